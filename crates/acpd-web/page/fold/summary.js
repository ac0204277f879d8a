// @ts-check
// A block in one line, as `acpd-view/src/summary.rs` says it.

import { diffsOf, isCall, lookUp, text as member } from './block.js';
import { commandsOf, linesOf } from './commands.js';
import { changesOf } from './diff.js';
import { lines, oneLine, page, trim, verbatim } from './escape.js';
import { bytes, duration } from './human.js';
import { NOT_READ } from './lenient.js';
import { cutShort } from './notice.js';

/** @typedef {import('./block.js').Json} Json */
/** @typedef {import('./block.js').Block} Block */
/** @typedef {import('./rows.js').Line} Line */

/** @param {Block} block @param {string} [folder] paths in it are shown without it @returns {Line} */
export function summary(block, folder) {
  if (block.shed) return block.shed;
  switch (block.kind) {
    case 'prompt': return firstLine('> ', 'user', block.content ?? []);
    case 'answer': return firstLine('', 'plain', block.content ?? []);
    case 'thought': return [['dim', block.progress === 'running' ? 'thinking' : 'thought']];
    case 'call': return how(block, [['plain', title(block.call ?? {})]]);
    case 'edit': return how(block, edit(block.call ?? {}, folder));
    case 'command': return how(block, command(block.call ?? {}));
    case 'plan': return plan(block);
    case 'question': return question(block);
    case 'subagent': return subagent(block);
    case 'notice': {
      const { severity, text } = block.notice ?? { severity: 'info', text: '' };
      return [[severity === 'info' ? 'dim' : severity === 'warning' ? 'warning' : 'bad', text]];
    }
    case 'gap':
      return [['warning', `a line of ${bytes(block.gap?.bytes ?? 0)} was left out: the limit is ${bytes(block.gap?.limit ?? 0)}`]];
    default: return turn(block.end ?? {});
  }
}

/** @param {Line} line */
export const plain = (line) => line.map(([, text]) => text).join('');

/** A call with how it ended, if that is not success. @param {Block} block @param {Line} line @returns {Line} */
function how({ progress }, line) {
  if (progress === 'failed') return [...line, ['plain', ' · '], ['bad', 'failed']];
  if (progress === 'interrupted') return [...line, ['plain', ' · '], ['warning', 'not finished']];
  return line;
}

/** What an agent calls a tool call, or what else is known of it. @param {Json} call */
export function title(call) {
  const title = member(call, 'title');
  if (title !== undefined && trim(title)) return oneLine(title);
  const kind = member(call, 'kind');
  return kind === undefined ? 'a call that began before' : oneLine(kind);
}

/** @param {string} mark @param {string} role @param {(string | Json)[]} content @returns {Line} */
function firstLine(mark, role, content) {
  const [first] = content;
  if (first === undefined) return [];
  const said = typeof first === 'string' ? lines(trim(first)) : [describe(first)];
  const line = typeof first === 'string' ? oneLine(said[0] ?? '') : said[0];
  const more = Math.max(0, said.length - 1) + content.length - 1;
  return more > 0 ? [[role, mark + line], ['dim', `  +${more}`]] : [[role, mark + line]];
}

/** Content that is not text, in one line. @param {Json} block */
export function describe(block) {
  const [kind, mime, name] = ['type', 'mimeType', 'name'].map((it) => member(block, it)).map((it) => it && oneLine(it));
  const uri = oneLine(member(kind === 'resource' ? block.resource : block, 'uri') ?? '');
  if (kind === 'image' || kind === 'audio') {
    const size = typeof block.data === 'string' ? Math.floor(block.data.length / 4) * 3 : 0;
    return `[${kind} ${mime ?? ''} ${bytes(size)}]`;
  }
  if (kind === 'resource_link' && (uri || name)) return uri && name && name !== uri ? `[${name}] ${uri}` : `[${uri || name}]`;
  if (kind === 'resource' && uri) return `[${uri}]`;
  return kind && kind !== 'text' ? `[${kind}: ${NOT_READ}]` : `[${NOT_READ}]`;
}

/** A path as people read it in this session. @param {string} path @param {string} [folder] */
export function short(path, folder) {
  const root = folder?.replace(/\/+$/, '');
  return root && path.startsWith(`${root}/`) && path.length > root.length + 1 ? path.slice(root.length + 1) : path;
}

/** @param {Json} call @param {string} [folder] @returns {Line} */
function edit(call, folder) {
  const files = diffsOf(call);
  const { added, removed } = changesOf(call, files);
  const paths = new Set(files.map((file) => file.path));
  const [first] = paths;
  const what = paths.size === 1 ? oneLine(short(first, folder)) : `${paths.size} files`;
  return [
    ['plain', 'edited '], ['name', what], ['plain', ' '], ['added', `+${added}`], ['plain', ' '],
    ['removed', `-${removed}`],
  ];
}

/** How a command ended, if the agent says so. @param {Json} call @returns {number | undefined} */
export function exitCode(call) {
  const output = call.rawOutput;
  return [output?.exitCode, output?.exit_code].find((code) => Number.isInteger(code));
}

/** @param {Json} call @returns {Line} */
function command(call) {
  const said = linesOf(commandsOf(call.rawInput)).map(verbatim);
  /** @type {Line} */
  const line = [['dim', '$ '], ['code', said[0] ?? title(call)]];
  if (said.length > 1) line.push(['dim', `  +${said.length - 1}`]);
  const code = exitCode(call);
  if (code) line.push(['bad', ` · exit ${code}`]);
  return line;
}

/** @param {Block} block @returns {Line} */
const plan = ({ text, entries = [] }) =>
  text === undefined ? [['plain', planWords(entries)]] : [['plain', 'plan'], ['dim', `: ${oneLine(text)}`]];

/** The steps of a plan in one line: how many are done, and the one that is being done or comes next. @param {Json[]} steps */
export function planWords(steps) {
  /** @param {string} status */
  const at = (status) => steps.find((step) => step.status === status);
  const now = at('in_progress') ?? at('pending');
  const done = steps.filter((step) => step.status === 'completed').length;
  return `plan ${done}/${steps.length}${now ? `: ${oneLine(now.content)}` : ''}`;
}

/** What is asked, in one line: the title, and what acpd reads in the call where that says more.
 * @param {string} title @param {string | undefined} subject */
export function named(title, subject) {
  const said = oneLine(title);
  if (subject === undefined || subject === null) return said;
  const what = oneLine(subject);
  const bare = said.trim().replace(/^`+|`+$/g, '').trim();
  const run = /^run `([^]*)`$/.exec(what);
  const rest = what.slice(what.indexOf(' ') + 1);
  const isWord = () => said.split(/\s+/).some((part) => part.replace(/^[`,:()]+|[`,:()]+$/g, '') === rest);
  const isSaid = run ? bare === run[1] : what.includes(' ') && isWord();
  return isSaid ? said : `${said}: ${what}`;
}

/** @param {Block} block @returns {Line} */
function question({ question }) {
  /** @type {Json} */
  const asked = question?.asked ?? {};
  const answer = question?.answer;
  const what = asked.kind === 'permission' ? named(asked.title ?? 'a tool call', asked.subject)
    : asked.kind === 'form' ? oneLine(asked.message)
    : `open ${page(asked)}`;
  if (!answer) return [['warning', '? '], ['plain', what]];
  return [['dim', `${answer.verdict} by ${answer.by}: `], ['dim', what]];
}

/** Calls that failed in a subagent, and in what it made. @param {Block} block @returns {number} */
const failed = (block) =>
  (block.blocks ?? []).reduce((sum, inner) =>
    sum + (inner.kind === 'subagent' ? failed(inner) : Number(inner.progress === 'failed')), 0);

/** @param {Block} block @returns {Line} */
function subagent(block) {
  const { progress, state, blocks = [] } = block;
  const words = { done: 'done', failed: 'failed', interrupted: 'not finished', running: '' };
  const now = lookUp(words, progress) || (state === undefined ? 'running' : oneLine(state.replaceAll('_', ' ')));
  /** @type {Line} */
  const line = [['plain', `${block.title === undefined ? 'subagent' : oneLine(block.title)}: ${now}`]];
  const steps = blocks.filter(isCall).length;
  if (steps > 0) line.push(['dim', steps === 1 ? ', 1 step' : `, ${steps} steps`]);
  const bad = failed(block);
  if (bad > 0) line.push(['plain', ', '], ['bad', `${bad} failed`]);
  return line;
}

/** How a turn ended, if it did not end by itself. @param {Json} end @returns {[string, string] | undefined} */
function sentence({ outcome, cutShort: cut }) {
  const why = oneLine(outcome.reason ?? outcome.message ?? '');
  switch (outcome.kind) {
    case 'stopped': {
      if (outcome.stopReason === 'end_turn') return undefined;
      return ['dim', `turn ended: ${cut ? cutShort(cut) : oneLine(outcome.stopReason.replaceAll('_', ' '))}`];
    }
    case 'error': return ['bad', `turn failed: ${why}`];
    case 'interrupted': return ['warning', `turn interrupted: ${why}; the last message may be incomplete`];
    case 'unwedged': return ['warning', `turn cancelled: ${why}; acpd restores the session`];
    default:
      return ['warning', `outcome unknown: ${why}; acpd does not send the prompt again: check what was done`];
  }
}

/** @param {Json} end @returns {Line} */
function turn(end) {
  /** @type {Line} */
  const line = [sentence(end) ?? ['dim', 'done']];
  if (end.startedAt > 0) line.push(['dim', ` · ${duration(end.at - end.startedAt)}`]);
  const files = end.files.length;
  if (files > 0) line.push(['dim', files === 1 ? ' · 1 file' : ` · ${files} files`]);
  return line;
}
