// @ts-check
// The blocks of a conversation, as the server sends them (`acpd-web/src/blocks.rs` has the messages and the states of a
// block), and what is known of the session beside them.

import { lookUp } from './lookup.js';

/** @typedef {import('./lookup.js').Json} Json */
/** The number of a line, or `a` and one. @typedef {number | string} Id */
/** @typedef {'running' | 'done' | 'failed' | 'interrupted'} Progress */
/** @typedef {'open' | 'closed' | {first: number} | {last: number}} Folding */
/** @typedef {'prompt' | 'answer' | 'thought' | 'call' | 'edit' | 'command' | 'plan' | 'question' | 'subagent'
 *   | 'notice' | 'gap' | 'turn'} Kind */
/** Spans of a line: what they mean, and their text. @typedef {[string, string][]} Line */
/** Number, sign and text of lines of a file. @typedef {{path: string, head?: Line, lines: [number, string, string][]}} File */

/**
 * @typedef {object} Block
 * @property {Id} id stays the same as long as it exists
 * @property {number} seq its first line in the journal
 * @property {number} last the last line that changed it
 * @property {number} turn the line with which its turn begins; 0 if that was not read
 * @property {Id} [of] the subagent that it is in
 * @property {Kind} kind
 * @property {Progress} progress
 * @property {Folding} folding by rule; a person's choice beats it
 * @property {Line} [line] the block in one line, unless it is a prompt or an answer
 * @property {'line' | 'part' | 'whole'} has how much of its body is here
 * @property {number} rev another number after each change
 * @property {(string | Json)[]} [content] a message: texts, and what is no text
 * @property {boolean} [steered]
 * @property {string} [tool] what kind of call it is
 * @property {string} [delegate] the session to which a call gives work
 * @property {string[]} [commands]
 * @property {File[]} [files] of a call
 * @property {string[]} [places]
 * @property {string[]} [output]
 * @property {number} [hidden] lines of output above those that are here
 * @property {number} [exit]
 * @property {Json[]} [entries] a plan
 * @property {string} [text] a plan without steps
 * @property {string} [asked] the id of a question
 * @property {string} [answer] how a question ended
 * @property {boolean} [refused]
 * @property {'asked' | 'refused'} [consent] the question about a call
 * @property {string} [severity] of a notice
 * @property {string[]} [changed] files that a turn has changed
 * @property {{amount: number, currency?: string}} [cost]
 * @property {Block[]} [blocks] what a subagent does
 */

/** @typedef {{seq: number, rev: number, blocks: Block[]}} Turn */

let revision = 0;

/** @param {Block} block */
export const isCall = ({ kind }) => kind === 'call' || kind === 'edit' || kind === 'command';

/** The texts of a message, one after the other. @param {Block} block */
export const textOf = (block) => (block.content ?? []).filter((part) => typeof part === 'string').join('');

/** @param {Line} [line] */
export const plain = (line = []) => line.map(([, text]) => text).join('');

/** Returns whether more of a body is shown than is here. @param {Block} block @param {Folding} folding */
export const isMissing = ({ has }, folding) => (has === 'line' && folding !== 'closed') || (has === 'part' && folding === 'open');

/** Puts something where its number belongs, in the place of what has that. @template {{seq: number}} T @param {T[]} list
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

  /** Takes a message of the server. Returns the block that is new or has changed. @param {string} name
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

  /** Takes which lines were read. @param {Json} range */
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

  /** Says that a block has changed, and so has what it is in. @param {Block} block */
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

  /** The last block of the last turn that is like this. @param {(block: Block) => boolean} isIt */
  lastOf(isIt) {
    return this.turns.at(-1)?.blocks.findLast(isIt);
  }

  /** The option that stands for the model, the mode or another category. @param {string} category @returns {Json | undefined} */
  option(category) {
    return this.header.options.find((/** @type {Json} */ option) => lookUp(option, 'category') === category);
  }
}
