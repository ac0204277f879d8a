// @ts-check
// Markdown as elements, without HTML: marked's lexer makes tokens, a table maps kinds of tokens to elements, and all
// other kinds are shown as text.

import { lookUp } from './lookup.js';
import { prose, verbatim } from './text/escape.js';
import { Lexer } from './lib/marked.js';
import { html } from './ui/html.js';
import { Code } from './ui/code.js';

/** @typedef {import('./lookup.js').Json} Token */

/** Levels of quotes, lists and emphasis that are elements. */
const DEEPEST = 24;

/** Lines of a paragraph stay lines: agents paste output. */
const OPTIONS = { gfm: true, breaks: true };

/** @type {Record<string, string>} */
const ENTITIES = {
  amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', reg: '®', trade: '™', hellip: '…',
  mdash: '—', ndash: '–', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', bull: '•', middot: '·', times: '×',
  divide: '÷', plusmn: '±', deg: '°', larr: '←', rarr: '→', uarr: '↑', darr: '↓', harr: '↔', rArr: '⇒', ne: '≠', le: '≤',
  ge: '≥', laquo: '«', raquo: '»', euro: '€', pound: '£', sect: '§', para: '¶', infin: '∞', check: '✓',
};

/** Outside of code. @param {string} text */
const decoded = (text) =>
  text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z]{2,8}));/g, (whole, decimal, hex, name) => {
    if (name) return lookUp(ENTITIES, name) ?? whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    const isChar = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return isChar ? String.fromCodePoint(code) : '\ufffd';
  });

/** @param {string} text */
const said = (text) => prose(decoded(text));

/** An address that may be opened, or undefined. @param {unknown} href @returns {URL | undefined} */
export function address(href) {
  if (typeof href !== 'string' || !URL.canParse(href)) return undefined;
  const url = new URL(href);
  return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : undefined;
}

/** @param {Token[]} tokens @returns {string} */
const plain = (tokens) => tokens.map((token) => (token.tokens ? plain(token.tokens) : token.text ?? '')).join('');

/** A link, with its target if its text could be mistaken for another one.
 * @param {unknown} href @param {any} children @param {string} text @param {string} raw */
function link(href, children, text, raw) {
  const url = address(decoded(String(href)));
  if (!url) return said(raw);
  const where = url.protocol === 'mailto:' ? url.pathname : url.host;
  const namesPlace = /[^\s.]\.[^\s.]|:\/\//.test(text) || !/[\p{L}\p{N}]/u.test(text);
  // A part before an @ looks like the host, and letters of other scripts look like Latin ones.
  const isHonest = text === where
    || (!url.username && !url.password && hostOf(text) === where && text.toLowerCase().includes(where));
  return html`<a href=${url.href} target="_blank" rel="noopener noreferrer" title=${prose(url.href)}>${children}</a>${
    namesPlace && !isHonest && html` <span class="host">(${prose(where)})</span>`}`;
}

/** The host that a text is the address of. @param {string} text */
const hostOf = (text) => (address(text) ?? address(`https://${text}`))?.host;

/** Elements by kind of token. @type {Record<string, (token: Token) => any>} */
const KINDS = {
  space: () => null,
  def: () => null,
  hr: () => html`<hr />`,
  br: () => html`<br />`,
  text: (token) => (token.tokens ? inner(token) : said(token.text)),
  escape: (token) => prose(token.text),
  paragraph: (token) => html`<p>${inner(token)}</p>`,
  // The heading of the page is above it.
  heading: (token) => html`<${`h${Math.min(6, token.depth + 1)}`}>${inner(token)}<//>`,
  strong: (token) => html`<strong>${inner(token)}</strong>`,
  em: (token) => html`<em>${inner(token)}</em>`,
  del: (token) => html`<del>${inner(token)}</del>`,
  codespan: (token) => html`<code>${verbatim(token.text)}</code>`,
  code: (token) => html`<${Code} text=${token.text} language=${token.lang} />`,
  blockquote: (token) => html`<blockquote>${inner(token)}</blockquote>`,
  checkbox: (token) => html`<input type="checkbox" disabled checked=${token.checked} aria-label=${token.checked ? 'done' : 'to do'} />`,
  link: (token) => link(token.href, inner(token), plain(token.tokens ?? []), token.raw),
  image: (token) => link(token.href, [`image: ${said(token.text || 'without a name')}`], '', token.raw),
  list: ({ ordered, start, items }) => {
    const entries = items.map((/** @type {Token} */ item) => html`<li class=${item.task ? 'task' : ''}>${inner(item)}</li>`);
    return ordered ? html`<ol start=${start === '' ? 1 : start}>${entries}</ol>` : html`<ul>${entries}</ul>`;
  },
  table: ({ header, rows, align }) => {
    /** @param {string} tag @returns {(cell: Token, at: number) => any} */
    const cell = (tag) => (it, at) => html`<${tag} class=${align[at] ? `to-${align[at]}` : ''}>${inner(it)}<//>`;
    return html`<div class="wide" tabindex="0" role="region" aria-label="table"><table>
      <thead><tr>${header.map(cell('th'))}</tr></thead>
      <tbody>${rows.map((/** @type {Token[]} */ row) => html`<tr>${row.map(cell('td'))}</tr>`)}</tbody>
    </table></div>`;
  },
};

/** @param {Token} token @returns {any} */
function element(token) {
  const make = lookUp(KINDS, token.type);
  return make ? make(token) : prose(token.raw ?? '');
}

/** @param {Token} token @returns {any[]} */
const inner = (token) => (token.tokens ?? []).map(element);

/** A lexer for up to DEEPEST levels; deeper ones stay text. */
class BoundedLexer extends Lexer {
  depth = 0;

  /** @param {string} source @param {any} [tokens] @param {boolean} [isLast] @returns {any} */
  blockTokens(source, tokens = [], isLast = false) {
    return this.below(source, tokens, () => super.blockTokens(source, tokens, isLast));
  }

  /** @param {string} source @param {any[]} [tokens] @returns {any[]} */
  inlineTokens(source, tokens = []) {
    return this.below(source, tokens, () => super.inlineTokens(source, tokens));
  }

  /** @param {string} source @param {any[]} tokens @param {() => any[]} read */
  below(source, tokens, read) {
    if (this.depth >= DEEPEST) {
      tokens.push({ type: 'written', raw: source });
      return tokens;
    }
    this.depth++;
    try {
      return read();
    } finally {
      this.depth--;
    }
  }
}

/** The tokens of a text that grows: only its last parts are read again. */
export class Growing {
  constructor() {
    this.source = '';
    /** @type {Token[]} */
    this.tokens = [];
  }

  /** @param {string} source @returns {Token[]} */
  read(source) {
    if (source === this.source) return this.tokens;
    const grows = source.startsWith(this.source);
    this.source = source;
    // A definition or a carriage return changes earlier tokens; an open list or paragraph may continue.
    const isWhole = !grows || source.includes(']:') || source.includes('\r');
    const kept = isWhole ? [] : this.tokens.slice(0, settled(this.tokens));
    const from = kept.reduce((sum, token) => sum + token.raw.length, 0);
    this.tokens = [...kept, ...new BoundedLexer(OPTIONS).lex(source.slice(from))];
    return this.tokens;
  }
}

/** The number of tokens that no later text can change. @param {Token[]} tokens */
function settled(tokens) {
  let at = tokens.length;
  for (let open = 2; at > 0 && open > 0;) if (tokens[--at].type !== 'space') open--;
  // Behind a blank line, so that no earlier token continues in the text that is read again.
  while (at > 0 && !(tokens[at - 1].type === 'space' && tokens[at - 1].raw.includes('\n\n'))) at--;
  return at;
}

/** @param {string} source @param {Growing} [growing] */
export const markdown = (source, growing = new Growing()) => growing.read(source).map(element);
