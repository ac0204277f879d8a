// @ts-check
// All sessions, agents and open questions from `_acpd/watch`, and the rows of the inbox.

import { lookUp } from './lookup.js';

/** @typedef {import('./lookup.js').Json} Json */
/** @typedef {'question' | 'form' | 'login' | 'interrupted' | 'blocked' | 'working' | 'silent' | 'resting'} What */
/** @typedef {{key: string, section: 'needs' | 'working' | 'recent', what: What, session?: Json, question?: Json,
 *   agent?: Json, since: number}} Row */

/** Time for which an interrupted session needs its user (ms). */
const INTERRUPTED_FOR = 24 * 60 * 60 * 1000;
/** Time without a line after which an agent is silent (ms). */
const SILENT_AFTER = 2 * 60 * 1000;

/** @param {string} agent @param {string} session */
export const keyOf = (agent, session) => `${agent}/${session}`;

export class Fleet {
  constructor() {
    /** @type {Map<string, Json>} */ this.sessions = new Map();
    /** @type {Map<string, Json>} */ this.agents = new Map();
    /** @type {Map<string, Json>} */ this.questions = new Map();
    /** The machines, if they are several. @type {Json[]} */ this.hosts = [];
    this.isKnown = false;
    /** Time of the last change. */
    this.at = 0;
    /** Time of the remembered state, until the daemon has sent its own. @type {number | undefined} */
    this.recalled = undefined;
    /** Another number after each change. */
    this.rev = 0;
  }

  /** @param {Json} told */
  snapshot(told) {
    this.sessions = new Map();
    this.agents = new Map();
    this.questions = new Map();
    this.isKnown = true;
    this.recalled = undefined;
    this.changed({ hosts: [], ...told });
  }

  /** @param {number} most @returns {Json[]} */
  newest(most) {
    return [...this.sessions.values()].sort((a, b) => b.updated - a.updated).slice(0, most);
  }

  /** Takes the remembered state. @param {Json} known */
  recall({ at, sessions }) {
    this.snapshot({ sessions });
    this.recalled = at;
  }

  /** @param {Json} told */
  changed({ sessions = [], agents = [], interactions = [], removed = {}, hosts = this.hosts }) {
    this.hosts = hosts;
    for (const { agent, sessionId } of removed.sessions ?? []) this.sessions.delete(keyOf(agent, sessionId));
    for (const name of removed.agents ?? []) this.agents.delete(name);
    for (const id of removed.interactions ?? []) this.questions.delete(id);
    for (const row of sessions) this.sessions.set(keyOf(row.agent, row.sessionId), row);
    for (const row of agents) this.agents.set(row.name, row);
    for (const row of interactions) this.questions.set(row.id, row);
    this.at = Date.now();
    this.rev++;
  }

  /** The open questions of a session, the oldest first. @param {string} key */
  questionsOf(key) {
    const asked = [...this.questions.values()].filter((it) => keyOf(it.agent, it.sessionId ?? '') === key);
    return asked.sort((a, b) => a.at - b.at);
  }

  /** The session with this name that works for another one. @param {string} key @param {string} cwd @param {string} name */
  childOf(key, cwd, name) {
    const named = [...this.sessions.values()].filter((row) => row.name === name);
    return named.find((row) => parentOf(row) === key) ?? named.find((row) => row.cwd === cwd);
  }

  /** @param {number} now @returns {Row[]} */
  rows(now) {
    /** @type {Row[]} */
    const rows = [];
    const asked = new Set();
    for (const question of this.questions.values()) {
      const key = keyOf(question.agent, question.sessionId ?? '');
      asked.add(key);
      const what = question.question.kind === 'permission' ? 'question' : 'form';
      rows.push({ key: `?${question.id}`, section: 'needs', what, question, session: this.sessions.get(key), since: question.at });
    }
    for (const agent of this.agents.values()) {
      if (!wantsLogin(agent)) continue;
      rows.push({ key: `@${agent.name}`, section: 'needs', what: 'login', agent, since: agent.auth?.since || agent.since });
    }
    for (const [key, session] of this.sessions) {
      if (!asked.has(key)) rows.push({ key, session, ...this.place(session, now) });
    }
    return rows.sort((a, b) => order(a) - order(b) || (a.section === 'needs' ? a.since - b.since : b.since - a.since));
  }

  /** @param {Json} session @param {number} now @returns {Pick<Row, 'section' | 'what' | 'since'>} */
  place(session, now) {
    const { turn, state, updated } = session;
    const agent = this.agents.get(session.agent);
    if (state === 'blocked' && !(agent && wantsLogin(agent))) return { section: 'needs', what: 'blocked', since: updated };
    if (turn.state !== 'idle' || session.queued > 0 || session.background?.length || session.limitedUntil !== undefined || state === 'restoring') {
      const last = Math.max(session.lastLine ?? 0, turn.since);
      const isSilent = turn.state === 'working' && now - last >= SILENT_AFTER;
      return { section: 'working', what: isSilent ? 'silent' : 'working', since: turn.since };
    }
    const wasCut = ['interrupted', 'outcome_unknown', 'unwedged'].includes(turn.last);
    if (wasCut && now - updated < INTERRUPTED_FOR) return { section: 'needs', what: 'interrupted', since: updated };
    return { section: 'recent', what: 'resting', since: updated };
  }
}

/** The key of the parent session. @param {Json | undefined} session */
const parentOf = (session) => session?.parent && keyOf(session.parent.agent, session.parent.sessionId);

/** Rows with child sessions below their parents, and their depth.
 * @param {Row[]} rows @returns {{row: Row, depth: number}[]} */
export function nested(rows) {
  const keys = new Set(rows.map(({ key }) => key));
  /** @type {Map<string, Row[]>} */
  const children = new Map();
  for (const row of rows) {
    const parent = parentOf(row.session);
    const of = keys.has(parent) && parent !== row.key ? parent : '';
    children.set(of, [...(children.get(of) ?? []), row]);
  }
  /** @param {string} key @param {number} depth @returns {{row: Row, depth: number}[]} */
  const below = (key, depth) => (children.get(key) ?? []).flatMap((row) => [{ row, depth }, ...below(row.key, depth + 1)]);
  return below('', 0);
}

/** @param {Json} agent */
const wantsLogin = (agent) =>
  agent.state === 'needs_auth' || ['needs_login', 'expired'].includes(agent.auth?.state);

/** @type {Record<What, number>} */
const ORDER = { question: 0, form: 0, interrupted: 1, blocked: 1, login: 2, working: 3, silent: 4, resting: 5 };
/** @param {Row} row */
const order = (row) => lookUp(ORDER, row.what) ?? 5;
