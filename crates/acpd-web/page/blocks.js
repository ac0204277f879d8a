// @ts-check
// The blocks of a conversation, as the server sends them (`acpd-web/src/blocks.rs` has the messages and the states of a
// block), and the header of the session.

import { lookUp } from './lookup.js';

/** @typedef {import('./lookup.js').Json} Json */
/** The number of a line, or `a` and a number. @typedef {number | string} Id */
/** @typedef {'running' | 'done' | 'failed' | 'interrupted'} Progress */
/** @typedef {'open' | 'closed' | {first: number} | {last: number}} Folding */
/** @typedef {'prompt' | 'answer' | 'thought' | 'call' | 'edit' | 'command' | 'plan' | 'question' | 'subagent'
 *   | 'notice' | 'gap' | 'turn'} Kind */
/** Spans of a line: meaning and text. @typedef {[string, string][]} Line */
/** Number, sign and text of lines of a file. @typedef {{path: string, head?: Line, lines: [number, string, string][]}} File */

/**
 * @typedef {object} Block
 * @property {Id} id stays the same as long as it exists
 * @property {number} seq its first line in the journal
 * @property {number} last the last line that changed it
 * @property {number} turn the first line of its turn; 0 if that was not read
 * @property {Id} [of] its subagent
 * @property {Kind} kind
 * @property {Progress} progress
 * @property {Folding} folding by rule; the user's choice wins
 * @property {Line} [line] the block in one line, unless it is a prompt or an answer
 * @property {'line' | 'part' | 'whole'} has the received part of its body
 * @property {number} rev another number after each change
 * @property {(string | Json)[]} [content] of a message: texts and other content
 * @property {boolean} [steered]
 * @property {string} [tool] kind of the call
 * @property {string} [delegate] the session that works for a call
 * @property {string[]} [commands]
 * @property {File[]} [files] of a call
 * @property {string[]} [places]
 * @property {string[]} [output]
 * @property {number} [hidden] lines of output above the received ones
 * @property {number} [exit]
 * @property {Json[]} [entries] of a plan
 * @property {string} [text] of a plan without steps
 * @property {string} [asked] the id of a question
 * @property {string} [answer] end of a question
 * @property {boolean} [refused]
 * @property {'asked' | 'refused'} [consent] the question about a call
 * @property {string} [severity] of a notice
 * @property {string[]} [changed] files that a turn has changed
 * @property {{amount: number, currency?: string}} [cost]
 * @property {Block[]} [blocks] of a subagent
 */

/** @typedef {{seq: number, rev: number, blocks: Block[]}} Turn */

let revision = 0;

/** @param {Block} block */
export const isCall = ({ kind }) => kind === 'call' || kind === 'edit' || kind === 'command';

/** The texts of a message, one after the other. @param {Block} block */
export const textOf = (block) => (block.content ?? []).filter((part) => typeof part === 'string').join('');

/** @param {Line} [line] */
export const plain = (line = []) => line.map(([, text]) => text).join('');

/** Returns whether the shown part of a body was not received yet. @param {Block} block @param {Folding} folding */
export const isMissing = ({ has }, folding) => (has === 'line' && folding !== 'closed') || (has === 'part' && folding === 'open');

/** Inserts an item at its number, or replaces the one with that number. @template {{seq: number}} T @param {T[]} list
 * @param {T} it */
function put(list, it) {
  let at = list.length;
  while (at > 0 && list[at - 1].seq > it.seq) at--;
  const isThere = at > 0 && list[at - 1].seq === it.seq;
  if (isThere) list[at - 1] = it;
  else list.splice(at, 0, it);
}

export class Blocks {
  constructor() {
    /** The oldest first. @type {Turn[]} */
    this.turns = [];
    /** All blocks, also those inside of subagents. @type {Map<Id, Block>} */
    this.all = new Map();
    /** @type {Json} */
    this.header = { modes: [], options: [], commands: [], working: false };
    /** The last line that was read. */
    this.at = 0;
    /** The first one. @type {number | undefined} */
    this.first = undefined;
    this.hasOlder = false;
  }

  /** Takes a message of the server. Returns the new or changed block. @param {string} name
   * @param {Json} params @returns {Block | undefined} */
  take(name, params) {
    this.at = Math.max(this.at, params.last ?? 0);
    const known = this.all.get(params.id);
    switch (name) {
      case '_page/block': return this.place(/** @type {Block} */ (params), known);
      case '_page/delta':
        if (!known?.content) return undefined;
        known.content = [...known.content.slice(0, -1), known.content.at(-1) + params.text];
        return this.touch(known);
      case '_page/done': return known && this.touch(Object.assign(known, params));
      case '_page/gone':
        if (known) this.remove(known);
        return undefined;
      case '_page/head': Object.assign(this.header, params); return undefined;
      default: this.know(params); return undefined;
    }
  }

  /** Takes the range of read lines. @param {Json} range */
  know({ seq = 0, first, hasOlder }) {
    this.at = Math.max(this.at, seq);
    this.first = first;
    this.hasOlder = hasOlder;
  }

  /** @param {Block} block @param {Block | undefined} before */
  place(block, before) {
    if (before && (before.turn !== block.turn || before.of !== block.of)) this.remove(before);
    if (block.kind === 'subagent') block.blocks = before?.blocks ?? [];
    this.all.set(block.id, block);
    const parent = this.parentOf(block);
    if (!this.turns.some((turn) => turn.seq === block.turn)) put(this.turns, { seq: block.turn, rev: 0, blocks: [] });
    put(parent?.blocks ?? this.turnOf(block)?.blocks ?? [], block);
    return this.touch(block);
  }

  /** @param {Block} block */
  parentOf({ of }) {
    return of === undefined ? undefined : this.all.get(of);
  }

  /** @param {Block} block */
  turnOf({ turn }) {
    return this.turns.findLast(({ seq }) => seq === turn);
  }

  /** Marks a block and the blocks around it as changed. @param {Block} block */
  touch(block) {
    for (let it = /** @type {Block | undefined} */ (block); it; it = this.parentOf(it)) it.rev = ++revision;
    const turn = this.turnOf(block);
    if (turn) turn.rev = revision;
    return block;
  }

  /** @param {Block} block */
  remove(block) {
    const turn = this.turnOf(block);
    const list = this.parentOf(block)?.blocks ?? turn?.blocks ?? [];
    const at = list.indexOf(block);
    if (at >= 0) list.splice(at, 1);
    this.touch(block);
    this.all.delete(block.id);
    if (turn?.blocks.length === 0) this.turns = this.turns.filter((it) => it !== turn);
  }

  /** The last matching block of the last turn. @param {(block: Block) => boolean} isIt */
  lastOf(isIt) {
    return this.turns.at(-1)?.blocks.findLast(isIt);
  }

  /** The option of a category, such as the model or the mode. @param {string} category @returns {Json | undefined} */
  option(category) {
    return this.header.options.find((/** @type {Json} */ option) => lookUp(option, 'category') === category);
  }
}
