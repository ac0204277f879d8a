// @ts-check
// Bodies of blocks that nobody looks at: they are dropped, and read again from the journal.
//
//  whole ──shed──▶ its summary, its place in the journal ──lines of that place: fill──▶ whole

import { changed, lookUp } from './block.js';
import { summary } from './summary.js';

/** @typedef {import('./block.js').Block} Block */
/** @typedef {import('./fold.js').State} State */

/** Characters of bodies that are kept. */
const MOST = 4 << 20;
/** Blocks around what is looked at that keep theirs. */
const CLOSE = 200;
/** What stays of a tool call: what says which it is, and what it was about. */
const STAY = ['toolCallId', 'kind', 'status', 'title'];

/** How much a value holds, in characters. @param {unknown} value @returns {number} */
function size(value) {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum, inner) => sum + size(inner), 0);
}

/** @param {Block} block @returns {number} */
const sizeOf = (block) =>
  size(block.content) + size(block.call) + (block.blocks ?? []).reduce((sum, inner) => sum + sizeOf(inner), 0);

/** Drops the body of a block, if it is over and the journal has it. @param {Block} block @param {string} [folder] */
function drop(block, folder) {
  const isKept = block.kind === 'prompt' || typeof block.id !== 'number' || block.partial || block.progress === 'running';
  if (isKept || block.shed || !(block.content || block.call || block.blocks)) return;
  block.shed = summary(block, folder);
  if (block.content) block.content = [];
  if (block.blocks) block.blocks = [];
  const { call } = block;
  if (call) block.call = Object.fromEntries(STAY.filter((name) => Object.hasOwn(call, name)).map((name) => [name, lookUp(call, name)]));
}

/** Above a limit, the blocks that are farthest from a line lose their bodies. @param {State} state @param {number} seen
 * @param {number} [most] */
export function shed(state, seen, most = MOST) {
  const blocks = state.turns.flatMap((turn) => turn.blocks);
  const sizes = blocks.map(sizeOf);
  let total = sizes.reduce((sum, it) => sum + it, 0);
  if (total <= most) return;
  const after = blocks.findIndex((block) => block.seq > seen);
  const here = after < 0 ? blocks.length : after;
  /** @param {number} at */
  const distance = (at) => Math.abs(at - here);
  const far = blocks.map((_, at) => at).filter((at) => distance(at) > CLOSE).sort((a, b) => distance(b) - distance(a));
  for (const at of far) {
    // Some room, so that this does not happen again with the next lines.
    if (total <= (most / 4) * 3) break;
    drop(blocks[at], state.folder);
    total -= sizes[at] - sizeOf(blocks[at]);
  }
}

/** Takes lines that were read again, and restores each block that lies wholly within them. @param {State} state
 * @param {{seq: number, line: unknown}[]} entries */
export function fill(state, entries) {
  const again = state.anew();
  again.header.modes = state.header.modes;
  for (const entry of entries) again.foldEntry(entry);
  const whole = new Map(again.turns.flatMap((turn) => turn.blocks).map((block) => [block.id, block]));
  for (const turn of state.turns) {
    for (const block of turn.blocks) {
      const found = block.shed && whole.get(block.id);
      if (!found || found.last !== block.last) continue;
      const { kind, content, call, blocks } = found;
      Object.assign(block, { kind, content, call, blocks, shed: undefined });
      changed(block);
      turn.rev++;
    }
  }
}
