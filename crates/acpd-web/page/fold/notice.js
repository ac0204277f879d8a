// @ts-check
// Notices of acpd and of agents as blocks, as `acpd-view/src/fold/notice.rs` makes them.

import { isCount, isObject, lookUp, make, text } from './block.js';
import { oneLine } from './escape.js';
import { NOT_READ } from './lenient.js';

/** @typedef {import('./block.js').Json} Json */
/** @typedef {import('./block.js').Block} Block */
/** @typedef {import('./block.js').Progress} Progress */
/** @typedef {import('./block.js').Notice} Notice */
/** @typedef {import('./turn.js').Step} Step */

/** @type {Record<string, (step: Step, params: Json) => [import('./block.js').Kind, Progress, Partial<Block>] | undefined>} */
const KINDS = {
  '_acpd/turn_ended': (_, params) => ended(params),
  '_acpd/restored': (_, params) => {
    const it = isCount(params.at) ? restored(params) : undefined;
    return it && ['notice', 'done', { notice: it }];
  },
  '_acpd/notice': (_, { severity, text: said }) => {
    if (typeof severity !== 'string' || typeof said !== 'string') return undefined;
    return ['notice', 'done', { notice: notice(severity === 'info' ? 'info' : 'warning', oneLine(said)) }];
  },
  '_acpd/skipped': (_, { bytes, limit }) =>
    isCount(bytes) && isCount(limit) ? ['gap', 'done', { gap: { bytes, limit } }] : undefined,
  '_acpd/permission_decided': (step, params) => decided(step, params),
  '_acpd/answered': (step, params) => answered(step, params),
};

/** The block of a notice of acpd; none for those that say nothing to a person.
 * @param {Step} step @param {string} method @param {Json} params */
export function block(step, method, params) {
  const made = lookUp(KINDS, method)?.(step, params);
  if (!made) return undefined;
  const [kind, progress, more] = made;
  return make(step.seq, kind, progress, { ...more, source: { method, params } });
}

/** The block of a notice of the agent. @param {Step} step @param {Json} update */
export function ofAgent(step, update) {
  const title = oneLine(text(update, 'title') ?? '');
  const more = oneLine(text(update, 'description') ?? '');
  const sentence = more ? `${title}: ${more}` : title;
  if (!sentence) return undefined;
  const severity = ['error', 'warning'].includes(update.severity) ? update.severity : 'info';
  return make(step.seq, 'notice', severity === 'error' ? 'failed' : 'done', { notice: notice(severity, sentence) });
}

/** The block of something that cannot be shown. @param {Step} step @param {string} what */
export const unread = (step, what) =>
  make(step.seq, 'notice', 'done', { notice: notice('warning', `${what} ${NOT_READ}`) });

/** The block of another mode. @param {Step} step @param {string} id @param {string} name */
export const mode = (step, id, name) =>
  make(step.seq, 'notice', 'done', { notice: notice('info', `mode: ${oneLine(name)}`, `mode ${id}`) });

/** What a compaction is now, for the states that are worth a word.
 * @param {string} id @param {Json} update @returns {[Progress, Notice] | undefined} */
export function compaction(id, update) {
  const topic = `compaction ${id}`;
  const why = text(update, 'error');
  switch (update.status) {
    case 'in_progress': return ['running', notice('info', 'compacting the conversation', topic)];
    case 'completed': return ['done', notice('info', 'the conversation was compacted', topic)];
    case 'failed': {
      const sentence = `the conversation could not be compacted${why === undefined ? '' : `: ${oneLine(why)}`}`;
      return ['failed', notice('warning', sentence, topic)];
    }
    case 'cancelled':
      return ['interrupted', notice('info', 'compacting the conversation was cancelled', topic)];
    default: return undefined;
  }
}

/** @param {Notice['severity']} severity @param {string} said @param {string} [topic] @returns {Notice} */
const notice = (severity, said, topic) => ({ severity, text: said, topic });

/** @param {Json} params @returns {['turn', Progress, Partial<Block>] | undefined} */
function ended(params) {
  const { turn, at, outcome, startedAt = 0, cutShort, files = [], tools, usage } = params;
  if (!isCount(turn) || !isCount(at) || !isCount(startedAt) || !isObject(outcome)) return undefined;
  /** @type {Record<string, [Progress, string]>} */
  const kinds = {
    stopped: ['done', 'stopReason'], error: ['failed', 'message'], interrupted: ['interrupted', 'reason'],
    unwedged: ['interrupted', 'reason'], outcome_unknown: ['interrupted', 'reason'],
  };
  const [progress, member] = lookUp(kinds, outcome.kind) ?? [];
  if (!progress || !member || text(outcome, member) === undefined) return undefined;
  return ['turn', progress, { end: { turn, startedAt, at, outcome, cutShort, files, tools, usage } }];
}

/** @param {Json} params @returns {Notice | undefined} */
function restored({ level, reason, gets }) {
  const why = reason === undefined ? 'the agent no longer has it' : oneLine(String(reason));
  switch (level) {
    case 'resumed': case 'loaded':
      return notice('info', 'conversation restored', 'restored');
    case 'partial':
      return notice('warning', `conversation restored in part: ${why}; the agent may not have the rest; `
        + 'your history is intact', 'restored');
    case 'reseeded':
      return notice('warning', `previous session could not be restored: ${why}; the agent continues with a `
        + `${oneLine(String(gets ?? 'summary'))}; `
        + 'your history is intact', 'restored');
    case 'lost': return notice('error', `session lost: ${why}; your history is intact`, 'restored');
    default: return undefined;
  }
}

/** @param {Step} step @param {Json} params @returns {['question', Progress, Partial<Block>] | undefined} */
function decided(step, params) {
  const { toolCallId, title, subject, shown, verdict, by } = params;
  if (typeof verdict !== 'string' || typeof by !== 'string' || typeof params.optionId !== 'string') return undefined;
  const refused = verdict !== 'allow';
  const answer = { verdict: refused ? 'denied' : 'allowed', by: oneLine(by), automatic: true, refused };
  return question(step, '', toolCallId, { kind: 'permission', title, subject, shown }, answer);
}

/** @param {Step} step @param {Json} params @returns {['question', Progress, Partial<Block>] | undefined} */
function answered(step, params) {
  const { id, toolCallId, title, subject, answer, by } = params;
  if (typeof id !== 'string' || !isObject(answer) || typeof by?.name !== 'string' || !isCount(params.at)) {
    return undefined;
  }
  const option = answer.option;
  if (answer.kind === 'option' && [option?.optionId, option?.name, option?.kind].some((it) => typeof it !== 'string')) {
    return undefined;
  }
  const how = verdict(answer);
  if (how === undefined) return undefined;
  const refused = answer.kind === 'option' && option.kind.startsWith('reject');
  const said = { verdict: how, by: person(by), automatic: false, refused };
  return question(step, id, toolCallId, { kind: 'permission', title, subject }, said);
}

/** @param {Json} answer @returns {string | undefined} */
function verdict({ kind, option }) {
  /** @type {Record<string, string>} */
  const options = {
    allow_once: 'allowed once', allow_always: 'allowed always', reject_once: 'denied once',
    reject_always: 'denied always',
  };
  switch (kind) {
    case 'option': return lookUp(options, option.kind) ?? `answered \`${oneLine(option.name)}\``;
    case 'accept': return 'accepted';
    case 'decline': return 'declined';
    case 'cancel': return 'cancelled';
    default: return undefined;
  }
}

/** @param {Step} step @param {string} id @param {string | undefined} toolCall @param {Json} asked
 * @param {import('./block.js').Answer} answer @returns {['question', Progress, Partial<Block>]} */
const question = (step, id, toolCall, asked, answer) =>
  ['question', 'done', { question: { id, session: step.session, toolCall, asked, answer } }];

/** Why a turn was cut short, and who did it: `cancelled by Zed`. @param {Json} cut */
export const cutShort = ({ why, by }) => `${oneLine(String(why))}${by ? ` by ${person(by)}` : ''}`;

/** A client and where its person is: `Zed`, `acpctl, pts/3`. @param {Json} client */
export function person({ name, title, place }) {
  const who = oneLine(title ?? name ?? '') || 'a client';
  return place ? `${who}, ${oneLine(place)}` : who;
}
