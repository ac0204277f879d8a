// @ts-check
// Code, coloured as soon as its language is loaded.

import { useEffect, useState } from '../lib/hooks.js';
import { lookUp } from '../lookup.js';
import { verbatim } from '../text/escape.js';
import { h } from '../lib/preact.js';
import { html } from './html.js';
import { Copy } from './parts.js';

/** Longer code has no colours. */
const LONGEST = 64 * 1024;
/** @type {Record<string, string>} */
const ALIASES = {
  // TypeScript includes JavaScript.
  javascript: 'typescript', js: 'typescript', jsx: 'typescript', mjs: 'typescript', cjs: 'typescript', ts: 'typescript',
  tsx: 'typescript', py: 'python', rs: 'rust', sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', yml: 'yaml',
  golang: 'go', jsonc: 'json', jsonl: 'json', patch: 'diff',
};
export const LANGUAGES = ['bash', 'diff', 'go', 'json', 'python', 'rust', 'typescript', 'yaml'];

/** @param {unknown} words @returns {string | undefined} */
export function languageOf(words) {
  const [name] = String(words ?? '').toLowerCase().split(/[\s,{]/);
  const language = lookUp(ALIASES, name) ?? name;
  return LANGUAGES.includes(language) ? language : undefined;
}

/** An emitter for highlight.js that makes elements, never HTML. */
class Elements {
  constructor() {
    /** @type {any[][]} */
    this.open = [[]];
    /** @type {string[]} */
    this.scopes = [];
  }

  /** @param {string} text */
  addText(text) {
    if (text) this.open[this.open.length - 1].push(shown(text));
  }

  /** @param {string} scope */
  startScope(scope) {
    this.scopes.push(scope);
    this.open.push([]);
  }

  endScope() {
    const children = this.open.pop() ?? [];
    const scope = this.scopes.pop() ?? '';
    this.open[this.open.length - 1].push(h('span', { class: `hl-${scope.split('.')[0]}` }, ...children));
  }

  openNode = this.startScope;
  closeNode = this.endScope;

  /** @param {Elements} inner */
  __addSublanguage(inner) {
    this.open[this.open.length - 1].push(...inner.open[0]);
  }

  finalize() {
    while (this.scopes.length > 0) this.endScope();
  }

  toHTML() {
    return '';
  }
}

/** @type {Promise<any> | undefined} */
let core;
/** @type {Map<string, Promise<any>>} */
const languages = new Map();

/** @param {any} parts @returns {string} */
const textIn = (parts) =>
  Array.isArray(parts) ? parts.map(textIn).join('') : typeof parts === 'string' ? parts : textIn(parts.props.children);

/** Returns code as coloured elements with every character of it, or fails.
 * @param {string} text @param {string} language @returns {Promise<any[]>} */
export async function coloured(text, language) {
  core ??= import('../lib/highlight.js').then(({ default: hljs }) => {
    hljs.configure({ __emitter: Elements });
    return hljs;
  });
  const hljs = await core;
  let loaded = languages.get(language);
  if (!loaded) {
    loaded = import(`../lib/highlight-${language}.js`).then((it) => hljs.registerLanguage(language, it.default));
    languages.set(language, loaded);
  }
  await loaded;
  const parts = hljs.highlight(text, { language, ignoreIllegals: true })._emitter.open[0];
  if (textIn(parts) !== shown(text)) throw new Error(`${language}: the colours change the text`);
  return parts;
}

/** @param {{text: string, language?: string}} props */
export function Code({ text, language }) {
  const [colours, setColours] = useState(/** @type {{text: string, parts: any[]} | undefined} */ (undefined));
  const name = languageOf(language);
  useEffect(() => {
    if (!name || text.length > LONGEST) return undefined;
    let isWanted = true;
    // Code is readable without colours.
    coloured(text, name).then((parts) => isWanted && setColours({ text, parts }), () => {});
    return () => {
      isWanted = false;
    };
  }, [text, name]);
  // While the code grows, its beginning keeps its colours.
  const parts = colours && text.startsWith(colours.text) ? [...colours.parts, shown(text.slice(colours.text.length))] : shown(text);
  return html`<figure class="code"><${Copy} text=${text} /><pre tabindex="0">${h('code', null, parts)}</pre></figure>`;
}

/** Escaped code. @param {string} text */
export const shown = (text) => text.split('\n').map(verbatim).join('\n');
