// @ts-check
// Rows: blocks, and groups of folded neighbours. The user chooses the folding, so they are
// made here, by the rules of `acpd-view/src/summary.rs`.

import { isCall } from './blocks.js';

/** @typedef {import('./blocks.js').Block} Block */
/** @typedef {import('./blocks.js').Folding} Folding */
/** A block, or consecutive folded calls. @typedef {Block | Block[]} Row */

/** @param {Block[]} blocks
 * @param {(block: Block) => Folding} [folding] @returns {Row[]} */
export function rows(blocks, folding = (block) => block.folding) {
  const joins = blocks.map((block) =>
    (isCall(block) || block.kind === 'thought' || block.kind === 'question') && folding(block) === 'closed');
  /** @type {Row[]} */
  const rows = [];
  for (let start = 0; start < blocks.length;) {
    let end = start + 1;
    while (joins[start] && end < blocks.length && joins[end]) end++;
    const part = blocks.slice(start, end);
    const first = part.findIndex(isCall);
    const last = part.findLastIndex((block) => block.kind !== 'thought');
    if (joins[start] && part.filter(isCall).length > 1) {
      // Thoughts around a group stay visible: the next block often follows from them.
      rows.push(...part.slice(0, first), part.slice(first, last + 1), ...part.slice(last + 1));
    } else {
      rows.push(...part);
    }
    start = end;
  }
  return rows;
}

/** Kinds of calls, and their words for one and several. */
const WORDS = [
  ['read', 'read', 'file', 'files'],
  ['edit', 'edited', 'file', 'files'],
  ['delete', 'deleted', 'file', 'files'],
  ['move', 'moved', 'file', 'files'],
  ['search', 'searched for', 'phrase', 'phrases'],
  ['execute', 'ran', 'command', 'commands'],
  ['fetch', 'fetched', 'page', 'pages'],
  ['other', 'used', 'tool', 'tools'],
];

/** Summarizes a group in one line: facts only, and failures always. @param {Block[]} group @returns {import('./blocks.js').Line} */
export function groupSummary(group) {
  const calls = group.filter(isCall);
  /** @type {Map<string[], number>} */
  const facts = new Map();
  for (const { kind, tool } of calls.filter(({ consent }) => consent !== 'refused')) {
    const wanted = kind === 'edit' ? 'edit' : kind === 'command' ? 'execute' : tool;
    const words = WORDS.find(([known]) => known === wanted) ?? WORDS[WORDS.length - 1];
    facts.set(words, (facts.get(words) ?? 0) + 1);
  }
  const told = [...facts].map(([[, verb, one, many], count]) => `${verb} ${count} ${count === 1 ? one : many}`);
  /** @param {string} progress */
  const ended = (progress) => calls.filter((block) => block.progress === progress && block.consent !== 'refused').length;
  /** @type {[number, string, string][]} */
  const bad = [
    [ended('failed'), 'bad', 'failed'],
    [ended('interrupted'), 'warning', 'not finished'],
    [group.filter((block) => block.refused).length, 'warning', 'denied'],
  ];
  /** @type {import('./blocks.js').Line} */
  const line = [['plain', told.join(', ')]];
  for (const [count, role, word] of bad) if (count > 0) line.push(['plain', line[0][1] || line.length > 1 ? ', ' : ''], [role, `${count} ${word}`]);
  return line;
}
