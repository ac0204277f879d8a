// @ts-check
// Changes of files: the lines that come and go, with some around them.

import { diffLines } from '../lib/diff.js';

/** @typedef {import('./block.js').FileDiff} FileDiff */
/** @typedef {{at: number, sign: '+' | '-' | ' ' | '⋮', text: string}} DiffLine */
/** @typedef {{added: number, removed: number, lines: DiffLine[]}} Change */

/** Unchanged lines around a change. */
const CONTEXT = 2;
/** A comparison that takes longer than this many milliseconds is told as all of it. */
const PATIENCE = 200;

/** @type {WeakMap<object, Change>} */
const known = new WeakMap();

/** Compares the texts. @param {FileDiff} file @returns {Change} */
export function changeOf(file) {
  const { oldText = '', newText } = file;
  const parts = diffLines(oldText, newText, { timeout: PATIENCE }) ?? [
    { removed: true, value: oldText, count: count(oldText) }, { added: true, value: newText, count: count(newText) },
  ];
  /** @type {DiffLine[]} */
  const all = [];
  let [before, after, added, removed] = [1, 1, 0, 0];
  for (const part of parts) {
    const lines = part.value.split('\n');
    if (lines.at(-1) === '') lines.pop();
    for (const text of lines) {
      if (part.removed) all.push({ at: before++, sign: '-', text });
      else if (part.added) all.push({ at: after++, sign: '+', text });
      else {
        all.push({ at: after++, sign: ' ', text });
        before++;
      }
    }
    if (part.added) added += lines.length;
    if (part.removed) removed += lines.length;
  }
  return { added, removed, lines: near(all) };
}

/** The same, kept as long as the call is. @param {object} owner @param {FileDiff[]} files @returns {Change} all of them */
export function changesOf(owner, files) {
  let change = known.get(owner);
  if (!change) {
    const each = files.map(changeOf);
    const added = each.reduce((sum, one) => sum + one.added, 0);
    const removed = each.reduce((sum, one) => sum + one.removed, 0);
    change = { added, removed, lines: [] };
    known.set(owner, change);
  }
  return change;
}

/** @param {string} text */
const count = (text) => text.split('\n').length;

/** What changes, and what is around it. @param {DiffLine[]} all */
function near(all) {
  const isNear = new Uint8Array(all.length);
  all.forEach(({ sign }, at) => {
    if (sign !== ' ') isNear.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
  });
  /** @type {DiffLine[]} */
  const lines = [];
  all.forEach((line, at) => {
    if (!isNear[at]) return;
    if (lines.length > 0 && !isNear[at - 1]) lines.push({ at: 0, sign: '⋮', text: '' });
    lines.push(line);
  });
  return lines;
}
