// @ts-check
// A turn: which block a line begins or changes, as `acpd-view/src/fold/turn.rs` decides.

import {
  changed as touch, folding, isMessage, isObject, kindOf, make, progressOf, text,
} from './block.js';
import * as lenient from './lenient.js';
import * as notice from './notice.js';

/** @typedef {import('./block.js').Json} Json */
/** @typedef {import('./block.js').Block} Block */
/** @typedef {import('./block.js').Id} Id */
/** @typedef {import('./block.js').Asked} Asked */
/** A line on its way into a turn: whose it is, and whether that is the session itself.
 * @typedef {{seq: number, session: string, isOwn: boolean, asked: Asked}} Step */
/** Ids of blocks that are new, changed or gone. @typedef {Set<Id>} Changed */
/** @typedef {'prompt' | 'answer' | 'thought'} Speaker */

/** A turn, or what was said before the first one. */
export class Turn {
  /** @param {{seq: number, turn: number, at: number}} [started] */
  constructor(started) {
    /** Where, which and when, if its beginning was read. */
    this.started = started;
    /** From top to bottom. One of them is its end; what is behind that came late.
     * @type {Block[]} */
    this.blocks = [];
    this.hasEnded = false;
    /** Another number after each change. */
    this.rev = 0;
  }

  /** The number of its first line. */
  get first() {
    return this.started?.seq ?? this.blocks[0]?.seq;
  }

  /** The turn is over, or the next one has begun: so is everything in it. @param {Asked} asked @param {Changed} changed */
  close(asked, changed) {
    this.hasEnded = true;
    endAll(this.blocks, changed);
    this.settle(asked, changed);
  }

  /** Applies the rules of folding anew. @param {Asked} asked @param {Changed} changed */
  settle(asked, changed) {
    if (settle(this.blocks, this.hasEnded, asked, changed)) this.rev++;
    this.rev++;
  }

  /** Adds a block that is over, or stands for itself. @param {Step} step @param {Block} block @param {Changed} changed */
  push(step, block, changed) {
    this.within(step, changed, (blocks, here) => push(blocks, block, here));
  }

  /** A piece of a message. @param {Step} step @param {Speaker} speaker @param {boolean} steered @param {Json} update
   * @param {Changed} changed */
  chunk(step, speaker, steered, update, changed) {
    const content = lenient.blocks(update.content);
    const messageId = text(update, 'messageId');
    this.within(step, changed, (blocks, here) => {
      const last = blocks.at(-1);
      const fits = last?.progress === 'running' && last.kind === speaker && last.messageId === messageId;
      if (last && fits && last.steered === steered) {
        for (const block of content) addTo(last.content ?? [], block);
        last.last = step.seq;
        here.add(touch(last));
        return;
      }
      const block = make(step.seq, speaker, 'running', { content: [], steered, messageId });
      for (const one of content) addTo(block.content ?? [], one);
      push(blocks, block, here);
    });
  }

  /** A tool call begins or changes. @param {Step} step @param {boolean} begins @param {Json} update
   * @param {Changed} changed */
  call(step, begins, update, changed) {
    // A call without an id cannot be told from others: each of its lines is one of its own.
    const id = text(update, 'toolCallId');
    // Null means unchanged.
    const members = Object.entries(update).filter(([name, value]) => name !== '_meta' && value !== null)
      .map(([name, value]) => (name === 'content' ? [name, lenient.items(value)] : [name, value]));
    this.within(step, changed, (blocks, here) => {
      const block = blocks.findLast((block) => id !== undefined && block.call?.toolCallId === id);
      if (!block?.call) {
        const call = Object.fromEntries(members);
        push(blocks, make(step.seq, kindOf(call), progressOf(call, 'running'), { call, partial: !begins }), here);
        return;
      }
      const before = block.progress;
      const call = { ...block.call, ...Object.fromEntries(members) };
      block.call = call;
      block.progress = progressOf(call, before);
      block.kind = kindOf(call);
      block.last = step.seq;
      here.add(touch(block));
      // What comes next is said about its result. An id would tell.
      if (block.progress !== before) endMessage(blocks, (message) => message.messageId === undefined, here);
    });
  }

  /** A plan; returns its steps. @param {Step} step @param {string} kind @param {Json} update @param {Changed} changed */
  plan(step, kind, update, changed) {
    const members = kind === 'plan_update' && isObject(update.plan) ? update.plan : update;
    const planId = text(members, 'planId');
    const isRemoved = kind === 'plan_removed';
    const entries = lenient.steps(members);
    const more = { entries, text: text(members, 'content') ?? text(members, 'uri'), planId };
    this.within(step, changed, (blocks, here) => {
      const at = blocks.findLastIndex((block) => block.kind === 'plan' && block.planId === planId);
      if (isRemoved) {
        if (at >= 0) here.add(blocks.splice(at, 1)[0].id);
      } else if (at >= 0) {
        Object.assign(blocks[at], more, { last: step.seq });
        here.add(touch(blocks[at]));
      } else {
        push(blocks, make(step.seq, 'plan', 'done', more), here);
      }
    });
    return entries;
  }

  /** A subagent is announced or changes. @param {Step} step @param {Json} update @param {Changed} changed */
  subagent(step, update, changed) {
    const session = text(update, 'sessionId');
    if (session === undefined) return;
    const state = text(update.state, 'state');
    const title = text(update, 'title');
    if (!path(this.blocks, session)) {
      // Its announcement may have been in another turn.
      const block = make(step.seq, 'subagent', 'running', { session, blocks: [], partial: title === undefined });
      this.push(step, block, changed);
    }
    const way = path(this.blocks, session);
    if (!way) return;
    this.touch(way, step.seq, changed);
    const block = way[way.length - 1];
    block.title = title ?? block.title;
    block.state = state ?? block.state;
    block.progress = block.state === 'idle' ? 'done' : block.state === 'unknown' ? 'interrupted' : 'running';
    if (block.progress !== 'running') endAll(block.blocks ?? [], changed);
    this.settlePath(way, step.asked, changed);
  }

  /** The agent makes the conversation shorter: a notice that changes. @param {Step} step @param {Json} update
   * @param {Changed} changed */
  compaction(step, update, changed) {
    const now = notice.compaction(text(update, 'compactionId') ?? '', update);
    if (!now) return;
    const [progress, said] = now;
    this.within(step, changed, (blocks, here) => {
      const block = blocks.findLast((block) => block.notice?.topic === said.topic);
      if (block) {
        Object.assign(block, { progress, notice: said, last: step.seq });
        here.add(touch(block));
      } else {
        push(blocks, make(step.seq, 'notice', progress, { notice: said }), here);
      }
    });
  }

  /** Changes the blocks of whose line it is: the turn's own, or those of a subagent.
   * @param {Step} step @param {Changed} changed @param {(blocks: Block[], here: Changed) => void} change */
  within(step, changed, change) {
    this.rev++;
    /** @type {Block[]} */
    let way = [];
    if (!step.isOwn) {
      if (!path(this.blocks, step.session)) {
        // It was announced in another turn, or before the first line that was read.
        const more = { id: `a${step.seq}`, session: step.session, blocks: [], partial: true };
        push(this.blocks, make(step.seq, 'subagent', 'running', more), changed);
      }
      way = path(this.blocks, step.session) ?? [];
      this.touch(way, step.seq, changed);
    }
    const blocks = way.at(-1)?.blocks ?? this.blocks;
    /** @type {Changed} */
    const here = new Set();
    change(blocks, here);
    // What a line changes is mostly near the end.
    for (let at = blocks.length - 1, left = here.size; at >= 0 && left > 0; at--) {
      const block = blocks[at];
      if (!here.has(block.id)) continue;
      block.folding = folding(block, this.hasEnded, step.asked);
      left--;
    }
    for (const id of here) changed.add(id);
    this.settlePath(way, step.asked, changed);
  }

  /** A line changes the subagents on the way to its place. @param {Block[]} way @param {number} seq
   * @param {Changed} changed */
  touch(way, seq, changed) {
    for (const block of way) {
      block.last = seq;
      changed.add(touch(block));
    }
  }

  /** Applies the rules to the subagents on the way to a place. @param {Block[]} way @param {Asked} asked
   * @param {Changed} changed */
  settlePath(way, asked, changed) {
    for (const block of [...way].reverse()) {
      const now = folding(block, this.hasEnded, asked);
      if (now !== block.folding) changed.add(touch(block));
      block.folding = now;
    }
  }
}

/** Adds a content block to a message; a text continues the text before it. @param {(string | Json)[]} message
 * @param {Json} content */
function addTo(message, content) {
  const last = message.length - 1;
  if (content.type !== 'text' || typeof content.text !== 'string') message.push(content);
  else if (typeof message[last] === 'string') message[last] += content.text;
  else message.push(content.text);
}

/** Adds a block below the others: what was said before it is over. @param {Block[]} blocks @param {Block} block
 * @param {Changed} changed */
function push(blocks, block, changed) {
  endMessage(blocks, () => true, changed);
  changed.add(block.id);
  blocks.push(block);
}

/** Ends the message that was said last, if it is such a one. @param {Block[]} blocks
 * @param {(message: Block) => boolean} isIt @param {Changed} changed */
function endMessage(blocks, isIt, changed) {
  const last = blocks.at(-1);
  if (last?.progress !== 'running' || !isMessage(last) || !isIt(last)) return;
  last.progress = 'done';
  changed.add(touch(last));
}

/** Ends what has no end of its own; whatever is in a block that ends is told, too. @param {Block[]} blocks
 * @param {Changed} changed */
function endAll(blocks, changed) {
  let any = false;
  for (const block of blocks) {
    let ends = block.progress === 'running';
    if (ends) block.progress = isMessage(block) ? 'done' : 'interrupted';
    if (block.blocks && endAll(block.blocks, changed)) ends = true;
    if (ends) changed.add(touch(block));
    any ||= ends;
  }
  return any;
}

/** Applies the rules anew, and tells what they changed. @param {Block[]} blocks @param {boolean} hasEnded
 * @param {Asked} asked @param {Changed} changed */
function settle(blocks, hasEnded, asked, changed) {
  let any = false;
  for (const block of blocks) {
    const isNew = block.blocks !== undefined && settle(block.blocks, hasEnded, asked, changed);
    const now = folding(block, hasEnded, asked);
    if (now !== block.folding || isNew) {
      changed.add(touch(block));
      any = true;
    }
    block.folding = now;
  }
  return any;
}

/** The way to a subagent: the subagents that it is in, and itself. @param {Block[]} blocks @param {string} session
 * @returns {Block[] | undefined} */
function path(blocks, session) {
  for (let at = blocks.length - 1; at >= 0; at--) {
    const block = blocks[at];
    if (!block.blocks) continue;
    if (block.session === session) return [block];
    const rest = path(block.blocks, session);
    if (rest) return [block, ...rest];
  }
  return undefined;
}

/** A block inside of subagents. @param {Block[]} blocks @param {Id} id @returns {Block | undefined} */
export function find(blocks, id) {
  // What is looked for is mostly near the end.
  for (let at = blocks.length - 1; at >= 0; at--) {
    const block = blocks[at];
    const found = block.id === id ? block : block.blocks && find(block.blocks, id);
    if (found) return found;
  }
  return undefined;
}

