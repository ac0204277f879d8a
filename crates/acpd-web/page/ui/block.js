// @ts-check
// A row of the stream: a block, or a group of folded ones.

import { diffsOf, lookUp, textOf } from '../fold/block.js';
import { commandsOf, linesOf } from '../fold/commands.js';
import { changeOf } from '../fold/diff.js';
import { oneLine, prose, verbatim } from '../fold/escape.js';
import { age, money } from '../fold/human.js';
import { outputOf } from '../fold/output.js';
import { groupSummary, rows } from '../fold/rows.js';
import { describe, exitCode, short, summary } from '../fold/summary.js';
import { useMemo, useState } from '../lib/hooks.js';
import { Growing, markdown } from '../markdown.js';
import { html } from './html.js';
import { Copy, Guard, Spans } from './parts.js';

/** @typedef {import('../fold/block.js').Block} Block */
/** @typedef {import('../fold/block.js').Folding} Folding */
/** What a person has folded and unfolded, and when blocks began.
 * @typedef {{folder?: string, foldingOf: (block: Block) => Folding, isGroupOpen: (id: string) => boolean,
 *   toggle: (key: string | number, isOpen: boolean) => void, beganAt: (block: Block) => number | undefined,
 *   now: number}} View */

/** Pictures that are shown. */
const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const MOST_PICTURE = 8 << 20;
/** Subagents in subagents that are shown. */
const DEEPEST = 16;
/** Lines of output that are in the document at once. */
const MOST_LINES = 400;

/** @type {Record<string, string>} */
const ICONS = {
  read: '◇', edit: '✎', delete: '−', move: '→', search: '⌕', execute: '$', think: '…', fetch: '↓', switch_mode: '⇄',
};

/** A head that folds what is below it. @param {{isOpen: boolean, onToggle: () => void, class?: string, icon?: string,
 *   children?: any, aside?: any}} props */
const Head = ({ isOpen, onToggle, icon, children, aside, ...props }) =>
  html`<button type="button" class=${`head ${props.class ?? ''}`} aria-expanded=${isOpen} onClick=${onToggle}>
    <span class="icon" aria-hidden="true">${icon ?? ''}</span><span class="line">${children}</span>
    <span class="aside">${aside}</span><span class="chevron" aria-hidden="true">${isOpen ? '▾' : '▸'}</span>
  </button>`;

/** @param {{row: import('../fold/rows.js').Row, view: View, depth?: number}} props */
export const RowView = ({ row, view, depth = 0 }) => (Array.isArray(row)
  ? html`<${Guard} what="This group" of=${row}><${Group} blocks=${row} view=${view} /><//>` : html`<${Guarded} block=${row} view=${view} depth=${depth} />`);

/** A block whose errors stay in it. @param {{block: Block, view: View, depth?: number}} props */
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
  const line = html`<${Spans} line=${summary(block, view.folder)} />`;
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
      // One that is open has its own card.
      return block.question?.answer ? html`<div class="said-line"><span class="icon" aria-hidden="true">✓</span><span>${line}</span></div>` : null;
    default: return html`<div class=${`notice is-${block.notice?.severity ?? 'warning'}`}>${line}</div>`;
  }
}

/** How long something has been running. @param {Block} block @param {View} view */
function time(block, view) {
  if (block.progress !== 'running') return null;
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
  if (block.shed) return html`<div class="answer is-dim"><${Spans} line=${block.shed} /></div>`;
  return html`<div class="answer">${(block.content ?? []).map((part, at) => {
    if (typeof part !== 'string') return html`<${Other} part=${part} />`;
    const known = growing.get(at) ?? new Growing();
    growing.set(at, known);
    return markdown(part, known);
  })}</div>`;
}

/** Content that is no text. @param {{part: any}} props */
function Other({ part }) {
  const isPicture = part.type === 'image' && PICTURES.includes(part.mimeType) && typeof part.data === 'string'
    && part.data.length * 0.75 <= MOST_PICTURE;
  const url = useMemo(() => (isPicture ? pictureOf(part) : undefined), [part]);
  const words = describe(part);
  return url ? html`<img class="picture" src=${url} alt=${words} />` : html`<div class="is-dim">${words}</div>`;
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
  const { call = {}, kind, progress } = block;
  const isOpen = folding !== 'closed';
  const icon = kind === 'command' ? undefined : lookUp(ICONS, kind === 'edit' ? 'edit' : call.kind) ?? '•';
  return html`<div class=${`call is-${kind} is-${progress}`}>
    <${Head} isOpen=${isOpen} onToggle=${toggle} icon=${icon} aside=${time(block, view)}>${line}<//>
    ${isOpen && html`<${CallBody} block=${block} folding=${folding} view=${view} />`}
  </div>`;
}

/** @param {{block: Block, folding: Folding, view: View}} props */
function CallBody({ block, folding, view }) {
  const { call = {}, kind } = block;
  const commands = linesOf(commandsOf(call.rawInput));
  const files = diffsOf(call);
  const said = useMemo(() => outputOf(call), [call]);
  const shown = last(said, folding);
  const hidden = said.length - shown.length;
  const code = exitCode(call);
  const places = (Array.isArray(call.locations) ? call.locations : []).filter((it) => typeof it?.path === 'string');
  const [whole, setWhole] = useState(false);
  const some = whole ? shown : shown.slice(-MOST_LINES);
  return html`<div class="body">
    ${(kind === 'command' ? commands.length > 1 : commands.length > 0) &&
      html`<pre class="command" tabindex="0">${commands.map(verbatim).join('\n')}</pre>`}
    ${files.map((file) => html`<${Diff} file=${file} path=${files.length > 1 ? short(file.path, view.folder) : undefined} />`)}
    ${files.length === 0 && kind === 'call' && places.length > 0 && html`<div class="places">${places.slice(0, 20).map((it) =>
      html`<span class="is-name">${oneLine(short(it.path, view.folder))}${it.line ? `:${it.line}` : ''}</span> `)}</div>`}
    ${said.length > 0 && html`<div class="output">
      ${hidden > 0 && html`<button type="button" class="quiet more" onClick=${() => view.toggle(block.id, true)}>… ${hidden} lines above</button>`}
      ${some.length < shown.length && html`<button type="button" class="quiet more" onClick=${() => setWhole(true)}>… ${shown.length - some.length} lines above</button>`}
      <pre tabindex="0">${some.map(verbatim).join('\n')}</pre></div>`}
    ${code !== undefined && html`<div class=${code ? 'is-bad' : 'is-dim'}>exit ${code}</div>`}
    ${said.length > 0 && hidden === 0 && html`<${Copy} text=${said.join('\n')} label="Copy output" />`}
  </div>`;
}

/** @param {{file: import('../fold/block.js').FileDiff, path?: string}} props */
export function Diff({ file, path }) {
  const change = useMemo(() => changeOf(file), [file.oldText, file.newText]);
  const [whole, setWhole] = useState(false);
  const shown = whole ? change.lines : change.lines.slice(0, MOST_LINES);
  return html`<figure class="diff">
    ${path !== undefined && html`<figcaption><span class="is-name">${oneLine(path)}</span> <span class="is-added">+${change.added}</span>
      <span class="is-removed"> -${change.removed}</span>${file.replaces ? ' replaces the file' : file.unseen ? ' what is there now is not known' : file.oldText === undefined && ' new file'}</figcaption>`}
    <div class="scroll" tabindex="0" role="region" aria-label=${`changes of ${oneLine(file.path)}`}><table>${shown.map((line) =>
      line.sign === '⋮' ? html`<tr class="cut"><td colspan="3">⋮</td></tr>`
      : html`<tr class=${line.sign === '+' ? 'added' : line.sign === '-' ? 'removed' : ''}>
        <td class="number">${line.at}</td><td class="sign">${line.sign}</td><td class="text">${verbatim(line.text.replace(/\r$/, ''))}</td></tr>`)}</table></div>
    ${shown.length < change.lines.length && html`<button type="button" class="quiet more" onClick=${() => setWhole(true)}>
      Show all ${change.lines.length} lines</button>`}
  </figure>`;
}

/** @type {Record<string, [string, string, string]>} */
const STEPS = { completed: ['✓', 'done', 'is-completed'], in_progress: ['▸', 'now', 'is-in_progress'] };

/** The steps of a plan. @param {{entries: import('../fold/block.js').Json[], text?: string}} props */
export const Steps = ({ entries, text }) => html`<ol class="steps">${entries.map(({ content, status, priority }) => {
  const [sign, word, role] = lookUp(STEPS, status) ?? ['○', 'to do', 'is-pending'];
  return html`<li class=${role}><span class="sign" aria-hidden="true">${sign}</span>
    <span class="unseen">${word}: </span><span>${oneLine(content)}${
    priority && priority !== 'medium' ? html` <span class="is-dim">(${oneLine(priority)})</span>` : null}</span></li>`;
})}</ol>${text !== undefined && html`<div class="answer">${markdown(text)}</div>`}`;

/** @param {{block: Block, line: any, view: View, isOpen: boolean, toggle: () => void}} props */
function TurnEnd({ block, line, view, isOpen, toggle }) {
  const { end = {}, progress } = block;
  const cost = money(end.usage?.cost);
  const files = end.files ?? [];
  const isGood = progress === 'done';
  return html`<div class=${`turn is-${progress}`}>
    <div class="rule">${files.length > 0
      ? html`<button type="button" class="quiet" aria-expanded=${isOpen} onClick=${toggle}><span>${line}${cost && ` · ${cost}`}</span></button>`
      : html`<span class=${isGood ? 'is-dim' : ''}>${line}${cost && ` · ${cost}`}</span>`}</div>
    ${files.length > 0 && isOpen && html`<ul class="files">${files.map((/** @type {string} */ file) =>
      html`<li class="is-name">${oneLine(short(file, view.folder))}</li>`)}</ul>`}
  </div>`;
}

