// @ts-check
// Blocks: what a person sees of a conversation, one under the other. As `acpd-view/src/block.rs` has them.

/** @typedef {Record<string, any>} Json */
/** A line's number; `a12`: around line 12; `q5`: a question of this client. @typedef {number | string} Id */
/** @typedef {'running' | 'done' | 'failed' | 'interrupted'} Progress */
/** @typedef {'open' | 'closed' | {first: number} | {last: number}} Folding */
/** @typedef {'prompt' | 'answer' | 'thought' | 'call' | 'edit' | 'command' | 'plan' | 'question' | 'subagent'
 *   | 'notice' | 'gap' | 'turn'} Kind */
/** @typedef {{verdict: string, by: string, automatic: boolean, refused: boolean}} Answer */
/** @typedef {{id: string, session: string, toolCall?: string, asked: Json, answer?: Answer}} Question */
/** @typedef {{severity: 'info' | 'warning' | 'error', text: string, topic?: string}} Notice */

/**
 * @typedef {object} Block
 * @property {Id} id stays the same as long as it exists
 * @property {number} seq where it begins in the journal; 0 for an open question
 * @property {number} last the last line that changed it
 * @property {Kind} kind
 * @property {Progress} progress
 * @property {Folding} folding by rule; a person's choice beats it
 * @property {boolean} partial its beginning was not read
 * @property {number} rev another number after each change
 * @property {import('./rows.js').Line} [shed] its summary, if its body was dropped
 * @property {Json} [source] the notice of acpd that it was made of
 * @property {(string | Json)[]} [content] a message: texts, and what is no text
 * @property {boolean} [steered]
 * @property {string} [messageId]
 * @property {Json} [call] the newest value of each member of a tool call
 * @property {Json[]} [entries] a plan
 * @property {string} [text] a plan without steps
 * @property {string} [planId]
 * @property {Question} [question]
 * @property {string} [session] a subagent
 * @property {string} [title]
 * @property {string} [state]
 * @property {Block[]} [blocks]
 * @property {Notice} [notice]
 * @property {{bytes: number, limit: number}} [gap]
 * @property {Json} [end] how a turn ended
 */

/** Lines of a prompt that are shown by rule. */
const PROMPT = Object.freeze({ first: 12 });
/** Of a thought that is not over. */
const THOUGHT = Object.freeze({ last: 3 });
/** Of what a command prints. */
const OUTPUT = Object.freeze({ last: 8 });

let revision = 0;
/** @param {Block} block */
export const changed = (block) => {
  block.rev = ++revision;
  return block.id;
};

/** @param {number} seq @param {Kind} kind @param {Progress} progress @param {Partial<Block>} [more] @returns {Block} */
export const make = (seq, kind, progress, more) => ({
  id: seq, seq, last: seq, kind, progress, folding: 'open', partial: false, rev: ++revision, ...more,
});

/** @param {unknown} value @returns {value is Json} */
export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
/** Returns what a table has under a word, which an agent may have chosen: never what every object has, such as
 * `constructor`. No module looks up a word in any other way.
 * @template T @param {Record<string, T> | undefined} table @param {unknown} word @returns {T | undefined} */
export const lookUp = (table, word) =>
  typeof word === 'string' && table && Object.hasOwn(table, word) ? table[word] : undefined;
/** @param {any} members @param {string} name @returns {string | undefined} */
export function text(members, name) {
  const value = isObject(members) ? lookUp(members, name) : undefined;
  return typeof value === 'string' ? value : undefined;
}
/** @param {unknown} value @returns {value is number} */
export const isCount = (value) => typeof value === 'number' && Number.isInteger(value) && value >= 0;
/** @param {Block} block */
export const isCall = (block) => block.call !== undefined;
/** @param {Block} block */
export const isMessage = (block) => block.content !== undefined;

/** The texts of a message, one after the other. @param {Block} block */
export const textOf = (block) => (block.content ?? []).filter((part) => typeof part === 'string').join('');

/** What a call produced, as far as it can be read. @param {Json} call @returns {Json[]} */
export const contentOf = (call) => (Array.isArray(call.content) ? call.content.filter(isObject) : []);

/** @typedef {{path: string, oldText?: string, newText: string, replaces?: boolean, unseen?: boolean}} FileDiff */
/** @param {Json} call @returns {FileDiff[]} */
export const diffsOf = (call) =>
  contentOf(call).flatMap((item) => {
    const { type, path = '', oldText, newText = '' } = item;
    return type === 'diff' ? [{ path, oldText, newText }] : [];
  });

/** Which kind of call it is by now. @param {Json} call @returns {Kind} */
export function kindOf(call) {
  /** @param {string} type */
  const has = (type) => Array.isArray(call.content) && call.content.some((item) => item?.type === type);
  if (has('diff')) return 'edit';
  return call.kind === 'execute' || has('terminal') ? 'command' : 'call';
}

/** @param {Json} call @param {Progress} before @returns {Progress} */
export const progressOf = (call, before) =>
  call.status === 'completed' ? 'done' : call.status === 'failed' ? 'failed' : before;

/** What open questions are about: tool calls, and the sessions of subagents. @typedef {Set<string>} Asked */

/** Whether a question of a subagent or of what it made is open. @param {Block} block @param {Asked} asked
 * @returns {boolean} */
const waits = (block, asked) =>
  asked.has(block.session ?? '') ||
  (block.blocks ?? []).some((inner) => {
    if (inner.kind === 'subagent') return waits(inner, asked);
    return isCall(inner) && asked.has(text(inner.call, 'toolCallId') ?? '');
  });

/** How much of a block is shown by rule. What a person has to see is open.
 * @param {Block} block @param {boolean} turnEnded @param {Asked} asked @returns {Folding} */
export function folding(block, turnEnded, asked) {
  /** @param {boolean} closed @returns {Folding} */
  const closedIf = (closed) => (closed ? 'closed' : 'open');
  if (isCall(block) && asked.has(text(block.call, 'toolCallId') ?? '')) return 'open';
  switch (block.kind) {
    case 'prompt': return PROMPT;
    case 'thought': return block.progress === 'running' ? THOUGHT : 'closed';
    case 'call': return closedIf(block.progress === 'done' || turnEnded);
    case 'edit': case 'plan': return closedIf(turnEnded);
    case 'command': return turnEnded ? 'closed' : OUTPUT;
    case 'question': return closedIf(block.question?.answer !== undefined);
    case 'subagent': return closedIf(block.progress === 'done' && !waits(block, asked));
    case 'notice': return closedIf(block.notice?.severity === 'info' && block.progress !== 'failed');
    case 'turn': return closedIf(block.progress === 'done');
    default: return 'open';
  }
}
