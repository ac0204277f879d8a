// @ts-check
// Folds the lines of a journal into blocks: pure, and total, because agents write most of what is in them. The same as
// `acpd-view/src/fold.rs`; the corpus in `acpd-view/fixtures/blocks` holds the two together.
//
//   State ─ turns ─ blocks ─ (subagent) ─ blocks …
//         ├ open questions: of this client alone, in no journal
//         └ header: the newest value of everything else

import { isCount, isObject, lookUp, make, text } from './block.js';
import { Header } from './header.js';
import { legible, mend } from './lenient.js';
import * as notices from './notice.js';
import { Turn, find } from './turn.js';

/** @typedef {import('./block.js').Json} Json */
/** @typedef {import('./block.js').Block} Block */
/** @typedef {import('./block.js').Id} Id */
/** @typedef {import('./turn.js').Changed} Changed */

/** @type {Record<string, import('./turn.js').Speaker>} */
const SPEAKERS = { user_message_chunk: 'prompt', agent_message_chunk: 'answer', agent_thought_chunk: 'thought' };

/** A session as far as its lines were read. */
export class State {
  /** @param {string} session @param {string} [folder] paths in it are shown without it */
  constructor(session, folder) {
    this.session = session;
    this.folder = folder;
    /** Plans are left out. */
    this.hidesPlans = false;
    this.header = new Header();
    /** The oldest first. @type {Turn[]} */
    this.turns = [];
    /** The open questions, the oldest first. @type {Block[]} */
    this.questions = [];
    /** The number of the last line. */
    this.at = 0;
    /** The lines before the first turn whose beginning was read, to fold them again behind older ones.
     * @type {{seq: number, method: string, params: Json}[]} */
    this.head = [];
  }

  /** The number of the first line, if anything was shown. */
  get first() {
    return this.head[0]?.seq ?? this.turns.find((turn) => turn.first !== undefined)?.first;
  }

  /** The block with this id, also inside of a subagent. @param {Id} id @returns {Block | undefined} */
  get(id) {
    const isAsked = String(id).startsWith('q');
    if (isAsked) return this.questions.find((block) => block.id === id);
    for (let at = this.turns.length - 1; at >= 0; at--) {
      const found = find(this.turns[at].blocks, id);
      if (found) return found;
    }
    return undefined;
  }

  /** Takes a message that the daemon has sent: a notification, or a request that asks a question. Returns the blocks
   * that are new or have changed, or are gone. @param {unknown} message @returns {Changed} */
  fold(message) {
    if (!isObject(message) || typeof message.method !== 'string' || !isObject(message.params)) return new Set();
    if (message.id !== undefined) return this.asked(message.id, message.method, legible(message.params));
    return this.notification(undefined, message.method, message.params);
  }

  /** Takes an entry of `_acpd/session/log`. @param {{seq: number, line: unknown}} entry @returns {Changed} */
  foldEntry({ seq, line }) {
    if (!isObject(line) || typeof line.method !== 'string' || !isObject(line.params) || line.id !== undefined) {
      return new Set();
    }
    return this.notification(seq, line.method, line.params);
  }

  /** Nothing yet of the same session. */
  anew() {
    const anew = new State(this.session, this.folder);
    anew.hidesPlans = this.hidesPlans;
    return anew;
  }

  /** Takes the entries right before the first line. @param {{seq: number, line: unknown}[]} entries */
  earlier(entries) {
    const older = this.anew();
    older.header.modes = this.header.modes;
    const first = this.first;
    /** @type {Changed} */
    const changed = new Set();
    /** @param {Changed} more */
    const add = (more) => more.forEach((id) => changed.add(id));
    for (const entry of entries) {
      if (first === undefined || entry.seq < first) add(older.foldEntry(entry));
    }
    if (this.turns[0] && !this.turns[0].started) this.turns.shift();
    for (const { seq, method, params } of this.head) add(older.notification(seq, method, params));
    const asked = this.askedAbout();
    for (const turn of older.turns) turn.settle(asked, changed);
    // The turn behind it has begun.
    if (this.turns.length > 0) older.turns.at(-1)?.close(asked, changed);
    this.head = older.head;
    this.turns = [...older.turns, ...this.turns];
    this.header.takeOlder(older.header);
    this.at = Math.max(this.at, older.at);
    return changed;
  }

  /** Takes a notification; `seq` is its number if it is not in it. @param {number | undefined} seq
   * @param {string} method @param {Json} written @returns {Changed} */
  notification(seq, method, written) {
    const params = legible(written);
    if (method === '$/cancel_request') return this.closeQuestion(params.requestId);
    if (method === '_acpd/session_state') {
      if (params.sessionId === this.session) this.header.live = params;
      return new Set();
    }
    const own = params._meta?._acpd;
    const number = seq ?? own?.seq;
    if (!isCount(number)) {
      // It is in no journal: the commands on offer when a session is taken up, say.
      const kind = text(params.update, 'sessionUpdate');
      if (method === 'session/update' && params.sessionId === this.session && kind !== undefined) {
        this.header.update(kind, mend(params.update));
      }
      return new Set();
    }
    // Sent again after a lost connection.
    if (number <= this.at) return new Set();
    const session = text(params, 'sessionId');
    if (session === undefined) return new Set();
    if (typeof own?.session === 'string' && own.session !== this.session) return new Set();
    const isStart = method === '_acpd/turn_started';
    if (!isStart && this.turns.every((turn) => !turn.started)) this.head.push({ seq: number, method, params });
    this.at = number;
    const step = { seq: number, session, isOwn: session === this.session, asked: this.askedAbout() };
    /** @type {Changed} */
    const changed = new Set();
    if (method === 'session/update') {
      this.update(step, own?.steered === true, mend(params.update), changed);
    } else if (isStart && step.isOwn) {
      const [turn, at] = [params.turn, params.at].map((it) => (isCount(it) ? it : 0));
      this.header.learn({ turn, working: true });
      this.turns.at(-1)?.close(step.asked, changed);
      this.turns.push(new Turn({ seq: number, turn, at }));
    } else {
      this.notice(step, method, params, changed);
    }
    return changed;
  }

  /** The turn that lines belong to. */
  get turn() {
    if (this.turns.length === 0) this.turns.push(new Turn());
    return this.turns[this.turns.length - 1];
  }

  /** @param {import('./turn.js').Step} step @param {string} method @param {Json} params @param {Changed} changed */
  notice(step, method, params, changed) {
    const block = notices.block(step, method, params);
    if (!block) return;
    this.turn.push(step, block, changed);
    if (method === '_acpd/turn_ended' && step.isOwn) {
      this.header.learn({ working: false });
      this.turn.close(step.asked, changed);
    }
    if (method === '_acpd/answered') {
      this.closeQuestions((question) => question.question?.id === params.id, changed);
    }
  }

  /** @param {import('./turn.js').Step} step @param {boolean} steered @param {any} update @param {Changed} changed */
  update(step, steered, update, changed) {
    const kind = isObject(update) ? text(update, 'sessionUpdate') : undefined;
    if (kind === undefined) {
      this.turn.push(step, notices.unread(step, 'an update of the agent'), changed);
      return;
    }
    const speaker = lookUp(SPEAKERS, kind);
    if (speaker) {
      this.turn.chunk(step, speaker, steered, update, changed);
      return;
    }
    switch (kind) {
      case 'tool_call': case 'tool_call_update': {
        const { sessionUpdate, ...call } = update;
        this.turn.call(step, kind === 'tool_call', call, changed);
        break;
      }
      case 'plan': case 'plan_update': case 'plan_removed': {
        if (this.hidesPlans) break;
        const plan = this.turn.plan(step, kind, update, changed);
        if (step.isOwn) this.header.learn({ plan });
        break;
      }
      case 'subagent_update': this.turn.subagent(step, update, changed); break;
      case 'compaction_update': this.turn.compaction(step, update, changed); break;
      case 'notice': {
        const block = notices.ofAgent(step, update);
        if (block) this.turn.push(step, block, changed);
        break;
      }
      case 'current_mode_update': {
        const mode = text(update, 'currentModeId');
        if (mode === undefined) {
          this.turn.push(step, notices.unread(step, 'the mode of the session'), changed);
          break;
        }
        const block = notices.mode(step, mode, this.header.modeName(mode));
        if (step.isOwn) this.header.learn({ mode });
        this.turn.push(step, block, changed);
        break;
      }
      // The rest is of the session alone, and shown by its newest value.
      default: if (step.isOwn) this.header.update(kind, update);
    }
  }

  /** Takes a request of the daemon. @param {unknown} request @param {string} method @param {Json} params
   * @returns {Changed} */
  asked(request, method, params) {
    const question = isCount(request) ? questionOf(method, params) : undefined;
    if (!question) return new Set();
    const id = `q${request}`;
    this.questions = this.questions.filter((block) => block.id !== id);
    this.questions.push(make(0, 'question', 'running', { id, question }));
    return this.questionsChanged(new Set([id]));
  }

  /** This client has answered a question, or acpd has taken it back. @param {unknown} request */
  closeQuestion(request) {
    return this.closeQuestions((block) => block.id === `q${request}`, new Set());
  }

  /** The connection was lost: what is still open is asked again. */
  closeAllQuestions() {
    return this.closeQuestions(() => true, new Set());
  }

  /** @param {(question: Block) => boolean} isIt @param {Changed} changed */
  closeQuestions(isIt, changed) {
    const closed = this.questions.filter(isIt);
    if (closed.length === 0) return changed;
    this.questions = this.questions.filter((block) => !closed.includes(block));
    for (const block of closed) changed.add(block.id);
    return this.questionsChanged(changed);
  }

  /** What a question is about is open as long as the question is. @param {Changed} changed */
  questionsChanged(changed) {
    const asked = this.askedAbout();
    for (const turn of this.turns) turn.settle(asked, changed);
    return changed;
  }

  /** What open questions are about. @returns {import('./block.js').Asked} */
  askedAbout() {
    const about = this.questions.flatMap(({ question }) => [question?.session, question?.toolCall]);
    return new Set(about.filter((it) => it !== undefined));
  }
}

/** @param {string} method @param {Json} params @returns {import('./block.js').Question | undefined} */
function questionOf(method, params) {
  const own = params._meta?._acpd;
  const session = text(params, 'sessionId');
  if (method === 'session/request_permission' && session !== undefined) {
    const { toolCall, options } = params;
    const asked = {
      kind: 'permission', title: text(toolCall, 'title'), toolKind: text(toolCall, 'kind'), shown: own?.shown,
      changed: own?.changed ?? 0, options: Array.isArray(options) ? options : [],
    };
    return { id: own?.id ?? '', session, toolCall: text(toolCall, 'toolCallId'), asked };
  }
  const isForm = params.mode === 'form' && isObject(params.requestedSchema?.properties);
  const isUrl = params.mode === 'url' && typeof params.url === 'string' && typeof params.elicitationId === 'string';
  if (method !== 'elicitation/create' || !(isForm || isUrl)) return undefined;
  const message = text(params, 'message') ?? '';
  const asked = isForm
    ? { kind: 'form', message, schema: params.requestedSchema, order: Object.keys(params.requestedSchema.properties) }
    : { kind: 'url', message, url: params.url };
  return { id: own?.id ?? '', session: session ?? '', toolCall: text(params, 'toolCallId'), asked };
}
