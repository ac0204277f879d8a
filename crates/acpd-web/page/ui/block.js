// @ts-check
// A row of the stream: a block, or a group of folded ones.

import { textOf } from '../blocks.js';
import { useEffect, useMemo, useState } from '../lib/hooks.js';
import { lookUp } from '../lookup.js';
import { Growing, markdown } from '../markdown.js';
import { groupSummary, rows } from '../rows.js';
import { prose } from '../text/escape.js';
import { age, money } from '../text/human.js';
import { hashOf } from '../store.js';
import { html } from './html.js';
import { nameOf } from './inbox.js';
import { Copy, Guard, Spans } from './parts.js';

/** @typedef {import('../blocks.js').Block} Block */
/** @typedef {import('../blocks.js').Folding} Folding */
/** The user's folding, and the starts of blocks.
 * @typedef {{foldingOf: (block: Block) => Folding, isGroupOpen: (id: string) => boolean,
 *   toggle: (key: string | number, isOpen: boolean) => void, beganAt: (block: Block) => number | undefined,
 *   now: number, childOf: (name: string) => import('../lookup.js').Json | undefined,
 *   follow: (row: import('../lookup.js').Json, told: () => void) => import('../session.js').Session}} View */

/** Types of shown pictures; the server sends no others. */
const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Most levels of subagents. */
const DEEPEST = 16;
/** Lines of a session that works for this one. */
const CHILD_LINES = 8;
/** Most lines of output in the document. */
const MOST_LINES = 400;

/** @type {Record<string, string>} */
const ICONS = {
  read: '◇', edit: '✎', delete: '−', move: '→', search: '⌕', execute: '$', think: '…', fetch: '↓', switch_mode: '⇄',
};

/** A head that folds the content below it. @param {{isOpen: boolean, onToggle: () => void, class?: string, icon?: string,
 *   children?: any, aside?: any}} props */
const Head = ({ isOpen, onToggle, icon, children, aside, ...props }) =>
  html`<button type="button" class=${`head ${props.class ?? ''}`} aria-expanded=${isOpen} onClick=${onToggle}>
    <span class="icon" aria-hidden="true">${icon ?? ''}</span><span class="line">${children}</span>
    <span class="aside">${aside}</span><span class="chevron" aria-hidden="true">${isOpen ? '▾' : '▸'}</span>
  </button>`;

/** @param {{row: import('../rows.js').Row, view: View, depth?: number}} props */
export const RowView = ({ row, view, depth = 0 }) => (Array.isArray(row)
  ? html`<${Guard} what="This group" of=${row}><${Group} blocks=${row} view=${view} /><//>` : html`<${Guarded} block=${row} view=${view} depth=${depth} />`);

/** A block that keeps its errors from the page. @param {{block: Block, view: View, depth?: number}} props */
const Guarded = ({ block, view, depth = 0 }) =>
  html`<${Guard} what="This block" of=${block.rev}><${BlockView} block=${block} view=${view} depth=${depth} /><//>`;

/** @param {{blocks: Block[], view: View}} props */
function Group({ blocks, view }) {
  const key = `g${blocks[0].id}`;
  const isOpen = view.isGroupOpen(key);
  return html`<div class="group">
    <${Head} isOpen=${isOpen} onToggle=${() => view.toggle(key, !isOpen)} icon="≡"><${Spans} line=${groupSummary(blocks)} /><//>
    ${isOpen && html`<div class="inside">${blocks.map((block) => html`<${Guarded} key=${block.id} block=${block} view=${view} />`)}</div>`}
  </div>`;
}

/** @param {{block: Block, view: View, depth: number}} props @returns {any} */
function BlockView({ block, view, depth }) {
  const folding = view.foldingOf(block);
  const isOpen = folding !== 'closed';
  const toggle = () => view.toggle(block.id, !isOpen);
  const line = html`<${Spans} line=${block.line} />`;
  switch (block.kind) {
    case 'prompt': return html`<${Prompt} block=${block} view=${view} folding=${folding} />`;
    case 'answer': return html`<${Answer} block=${block} />`;
    case 'thought': return html`<div class="thought">
      <${Head} isOpen=${isOpen} onToggle=${toggle} icon="∴" aside=${time(block, view)}>${line}<//>
      ${isOpen && html`<div class="body">${last(prose(textOf(block).trim()).split('\n'), folding).join('\n')}</div>`}
    </div>`;
    case 'call': case 'edit': case 'command':
      return html`<${Call} block=${block} view=${view} folding=${folding} toggle=${toggle} line=${line} />`;
    case 'plan': return html`<div class="plan">
      <${Head} isOpen=${isOpen} onToggle=${toggle} icon="☰">${line}<//>
      ${isOpen && html`<${Steps} entries=${block.entries ?? []} text=${block.text} />`}
    </div>`;
    case 'subagent': return html`<div class=${`subagent is-${block.progress}`}>
      <${Head} isOpen=${isOpen} onToggle=${toggle} icon="⑂" aside=${time(block, view)}>${line}<//>
      ${isOpen && depth < DEEPEST && html`<div class="inside">${rows(block.blocks ?? [], view.foldingOf).map((row) =>
        html`<${RowView} key=${Array.isArray(row) ? `g${row[0].id}` : row.id} row=${row} view=${view} depth=${depth + 1} />`)}</div>`}
    </div>`;
    case 'turn': return html`<${TurnEnd} block=${block} line=${line} view=${view} isOpen=${isOpen} toggle=${toggle} />`;
    case 'question':
      // An open question has its own card.
      return block.answer ? html`<div class="said-line"><span class="icon" aria-hidden="true">${block.refused ? '✗' : '✓'}</span><span>${line}</span></div>` : null;
    default: return html`<div class=${`notice is-${block.severity ?? 'warning'}`}>${line}</div>`;
  }
}

/** The running time of a block. @param {Block} block @param {View} view */
function time(block, view) {
  if (block.progress !== 'running' || block.consent === 'asked') return null;
  const began = view.beganAt(block);
  return html`<span class="running">${began === undefined ? 'running' : age(view.now - began)}</span>`;
}

/** @param {string[]} all @param {Folding} folding */
const last = (all, folding) => (typeof folding === 'object' && 'last' in folding ? all.slice(-folding.last) : all);

/** @param {{block: Block, view: View, folding: Folding}} props */
function Prompt({ block, view, folding }) {
  const text = prose(textOf(block).trim());
  const all = text.split('\n');
  const most = typeof folding === 'object' && 'first' in folding ? folding.first : Infinity;
  const isCut = all.length > most;
  return html`<div class="prompt">
    <span class="unseen">${block.steered ? 'you, into the running turn:' : 'you:'}</span>
    ${block.steered && html`<span class="tag">steered</span>`}
    <div class="words">${isCut ? all.slice(0, most).join('\n') : text}</div>
    ${(block.content ?? []).map((part) => typeof part !== 'string' && html`<${Other} part=${part} />`)}
    ${isCut && html`<button type="button" class="quiet more" aria-expanded="false" onClick=${() => view.toggle(block.id, true)}>
      Show all ${all.length} lines</button>`}
    ${most === Infinity && all.length > 12 && html`<button type="button" class="quiet more" aria-expanded="true"
      onClick=${() => view.toggle(block.id, false)}>Show less</button>`}
  </div>`;
}

/** @param {{block: Block}} props */
function Answer({ block }) {
  const [growing] = useState(() => new Map());
  return html`<div class="answer">${(block.content ?? []).map((part, at) => {
    if (typeof part !== 'string') return html`<${Other} part=${part} />`;
    const known = growing.get(at) ?? new Growing();
    growing.set(at, known);
    return markdown(part, known);
  })}</div>`;
}

/** Content other than text. @param {{part: any}} props */
function Other({ part }) {
  const url = useMemo(() => (PICTURES.includes(part.mimeType) ? pictureOf(part) : undefined), [part]);
  return url ? html`<img class="picture" src=${url} alt=${part.words} />` : html`<div class="is-dim">${part.words}</div>`;
}

/** @param {any} part */
function pictureOf({ data, mimeType }) {
  try {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    return URL.createObjectURL(new Blob([bytes], { type: mimeType }));
  } catch {
    return undefined;
  }
}

/** @param {{block: Block, view: View, folding: Folding, toggle: () => void, line: any}} props */
function Call({ block, view, folding, toggle, line }) {
  const { tool, kind, progress } = block;
  const isOpen = folding !== 'closed';
  const icon = kind === 'command' ? undefined : lookUp(ICONS, kind === 'edit' ? 'edit' : tool) ?? '•';
  const child = block.delegate && view.childOf(block.delegate);
  return html`<div class=${`call is-${kind} is-${progress}`}>
    <${Head} isOpen=${isOpen} onToggle=${toggle} icon=${icon} aside=${time(block, view)}>${line}<//>
    ${isOpen && child && html`<div class="body child">
      ${progress === 'running' && html`<${ChildWords} key=${child.sessionId} row=${child} view=${view} />`}
      <a href=${hashOf({ view: 'session', agent: child.agent, id: child.sessionId })}>open ${nameOf(child)}</a></div>`}
    ${isOpen && block.output && html`<${CallBody} block=${block} folding=${folding} view=${view} />`}
  </div>`;
}

/** The latest lines of a child session. @param {{row: import('../lookup.js').Json, view: View}} props */
function ChildWords({ row, view }) {
  const [session, setSession] = useState(/** @type {import('../session.js').Session | undefined} */ (undefined));
  const [, setRev] = useState(0);
  useEffect(() => {
    const child = view.follow(row, () => setRev((rev) => rev + 1));
    setSession(child);
    child.open();
    return () => child.close();
  }, []);
  const answers = session?.state.turns.at(-1)?.blocks.filter(({ kind }) => kind === 'answer') ?? [];
  const lines = prose(answers.map(textOf).join('\n').trim()).split('\n');
  return html`<div class="words">${lines.slice(-CHILD_LINES).join('\n')}</div>`;
}

/** @param {{block: Block, folding: Folding, view: View}} props */
function CallBody({ block, folding, view }) {
  const { commands = [], files = [], places = [], output = [], hidden = 0, exit } = block;
  const shown = last(output, folding);
  const above = output.length - shown.length + hidden;
  const [whole, setWhole] = useState(false);
  const some = whole ? shown : shown.slice(-MOST_LINES);
  return html`<div class="body">
    ${commands.length > 0 && html`<pre class="command" tabindex="0">${commands.join('\n')}</pre>`}
    ${files.map((file) => html`<${Diff} ...${file} />`)}
    ${places.length > 0 && html`<div class="places">${places.map((place) => html`<span class="is-name">${place}</span> `)}</div>`}
    ${output.length > 0 && html`<div class="output">
      ${above > 0 && html`<button type="button" class="quiet more" onClick=${() => view.toggle(block.id, true)}>… ${above} lines above</button>`}
      ${some.length < shown.length && html`<button type="button" class="quiet more" onClick=${() => setWhole(true)}>… ${shown.length - some.length} lines above</button>`}
      <pre tabindex="0">${some.join('\n')}</pre></div>`}
    ${typeof exit === 'number' && html`<div class=${exit ? 'is-bad' : 'is-dim'}>exit ${exit}</div>`}
    ${output.length > 0 && above === 0 && html`<${Copy} text=${output.join('\n')} label="Copy output" />`}
  </div>`;
}

/** @type {Record<string, string>} */
const SIGNS = { '+': 'added', '-': 'removed', '⋮': 'cut' };

/** @param {import('../blocks.js').File} props */
export function Diff({ path, head, lines }) {
  const [whole, setWhole] = useState(false);
  const shown = whole ? lines : lines.slice(0, MOST_LINES);
  return html`<figure class="diff">
    ${head && html`<figcaption><${Spans} line=${head} /></figcaption>`}
    <div class="scroll" tabindex="0" role="region" aria-label=${`changes of ${path}`}><table>${shown.map(([at, sign, text]) =>
      sign === '⋮' ? html`<tr class="cut"><td colspan="3">⋮</td></tr>`
      : html`<tr class=${lookUp(SIGNS, sign) ?? ''}><td class="number">${at}</td><td class="sign">${sign}</td><td class="text">${text}</td></tr>`)}</table></div>
    ${shown.length < lines.length && html`<button type="button" class="quiet more" onClick=${() => setWhole(true)}>
      Show all ${lines.length} lines</button>`}
  </figure>`;
}

/** @type {Record<string, [string, string, string]>} */
const STEPS = { completed: ['✓', 'done', 'is-completed'], in_progress: ['▸', 'now', 'is-in_progress'] };

/** @param {{entries: import('../lookup.js').Json[], text?: string}} props */
export const Steps = ({ entries, text }) => html`<ol class="steps">${entries.map(({ content, status, priority }) => {
  const [sign, word, role] = lookUp(STEPS, status) ?? ['○', 'to do', 'is-pending'];
  return html`<li class=${role}><span class="sign" aria-hidden="true">${sign}</span>
    <span class="unseen">${word}: </span><span>${content}${
    priority && priority !== 'medium' ? html` <span class="is-dim">(${priority})</span>` : null}</span></li>`;
})}</ol>${text && html`<div class="answer">${markdown(text)}</div>`}`;

/** @param {{block: Block, line: any, view: View, isOpen: boolean, toggle: () => void}} props */
function TurnEnd({ block, line, view, isOpen, toggle }) {
  const { changed: files = [], progress } = block;
  const cost = money(block.cost);
  const isGood = progress === 'done';
  return html`<div class=${`turn is-${progress}`}>
    <div class="rule">${files.length > 0
      ? html`<button type="button" class="quiet" aria-expanded=${isOpen} onClick=${toggle}><span>${line}${cost && ` · ${cost}`}</span></button>`
      : html`<span class=${isGood ? 'is-dim' : ''}>${line}${cost && ` · ${cost}`}</span>`}</div>
    ${files.length > 0 && isOpen && html`<ul class="files">${files.map((file) => html`<li class="is-name">${file}</li>`)}</ul>`}
  </div>`;
}

