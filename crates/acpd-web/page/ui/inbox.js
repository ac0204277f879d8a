// @ts-check
// All sessions: those that need the user, working ones, and recent ones.

import { nested } from '../fleet.js';
import { lookUp } from '../lookup.js';
import { oneLine, page, verbatim } from '../text/escape.js';
import { age, duration, money } from '../text/human.js';
import { useMemo, useState } from '../lib/hooks.js';
import { hashOf } from '../store.js';
import { html } from './html.js';
import { Guard, Mark } from './parts.js';

/** @typedef {import('../lookup.js').Json} Json */
/** @typedef {import('../fleet.js').Row} Row */

/** Recent rows that are shown at first. */
const FEW = 30;

/** The name of a session for people. @param {Json | undefined} session */
export const nameOf = (session) => {
  if (!session) return '';
  if (session.name) return oneLine(session.name);
  const title = session.title && oneLine(session.title);
  return title || oneLine(session.sessionId);
};

/** A directory with `~` for the user's home. @param {string} path @param {Json | undefined} daemon */
export function folderOf(path, daemon) {
  const home = /^(\/home\/[^/]+|\/Users\/[^/]+|\/root)(?=\/|$)/.exec(daemon?.config ?? '')?.[0];
  return oneLine(home && (path === home || path.startsWith(`${home}/`)) ? `~${path.slice(home.length)}` : path);
}

/** @type {Record<string, string>} */
const VERBS = { execute: 'run', edit: 'edit', read: 'read', delete: 'delete', move: 'move', fetch: 'fetch' };

/** A question on one line: verb and subject. @param {Json} question @returns {[string, string]} */
export function askedLine({ question }) {
  if (question.kind === 'form') return ['form', oneLine(question.message)];
  if (question.kind === 'url') return ['open', page(question)];
  const { shown, title, subject, toolKind } = question;
  const verb = lookUp(VERBS, shown?.kind ?? toolKind) ?? 'do';
  const [first, ...more] = (shown?.commands?.[0] ?? '').trimEnd().split('\n');
  if (first) return [verb, verbatim(first) + (more.length > 0 ? ` +${more.length}` : '')];
  return [verb, oneLine(subject ?? title ?? 'a tool call')];
}

/** @param {string} text */
const bare = (text) => oneLine(text.replace(/^[# ]+/, '').replaceAll('**', '').replaceAll('`', ''));

/** The present work of a session. @param {Json} session @param {number} now */
function doing({ doing, state, turn, limitedUntil, background = [] }, now) {
  if (limitedUntil !== undefined && turn.state === 'idle') return `waits ${duration(limitedUntil - now)} for the end of a usage limit`;
  if (turn.state === 'idle' && background.length > 0) {
    const [{ title, id }, ...more] = background;
    return `in the background: ${oneLine(title ?? id)}${more.length > 0 ? ` +${more.length}` : ''}`;
  }
  if (!doing) return state === 'restoring' ? 'comes back' : turn.state === 'idle' ? 'waits for its turn' : 'works';
  const text = doing.text ? (doing.kind === 'command' ? oneLine(doing.text) : bare(doing.text)) : '';
  switch (doing.kind) {
    case 'starting': return 'starts';
    case 'thinking': return 'thinks';
    case 'writing': return text ? `writes: ${text}` : 'writes';
    case 'command': return `$ ${text}`;
    case 'waiting': return text ? `waits for an answer: ${text}` : 'waits for an answer';
    default: return text || 'works';
  }
}

/** @type {Record<string, [string, string]>} */
const LAST = {
  end_turn: ['is-dim', 'done'], interrupted: ['is-bad', 'interrupted'], unwedged: ['is-bad', 'interrupted'],
  error: ['is-bad', 'failed'], refusal: ['is-warning', 'refused'], cancelled: ['is-dim', 'cancelled'],
};

/** The second line of a row. @param {Row} row @param {number} now @returns {[string, string]} */
function news({ what, session, question, agent }, now) {
  if (question) return ['is-asked', askedLine(question).join('  ')];
  if (agent) return ['is-warning', 'wants a login'];
  if (!session) return ['', ''];
  if (what === 'interrupted') {
    const reason = session.turn.reason ? `: ${oneLine(session.turn.reason)}` : '';
    const word = session.turn.last === 'outcome_unknown' ? 'the prompt may not have arrived'
      : session.turn.last === 'unwedged' ? 'the agent hung and was stopped' : 'interrupted';
    return ['is-bad', word + reason];
  }
  if (what === 'blocked') return ['is-bad', oneLine(session.reason ?? 'blocked')];
  if (what === 'silent') return ['is-dim', `silent for ${duration(now - Math.max(session.lastLine ?? 0, session.turn.since))}`];
  if (what === 'working') return ['', doing(session, now) + (session.queued > 0 ? ` · ${session.queued} queued` : '')];
  if (session.state === 'lost') return ['is-bad', 'lost'];
  const [role, word] = lookUp(LAST, session.turn.last) ?? ['is-dim', session.turn.last ? oneLine(session.turn.last) : 'new'];
  const title = session.name && session.title ? bare(session.title) : '';
  return [role, [word, money(session.usage?.cost), title].filter(Boolean).join(' · ')];
}

/** @param {{row: Row, now: number, isOpen: boolean, daemon?: Json}} props */
function RowOf({ row, now, isOpen, daemon }) {
  const { session, question, agent } = row;
  const [role, words] = news(row, now);
  const name = agent ? oneLine(agent.title ?? agent.name) : nameOf(session ?? question);
  const who = oneLine(session?.agent ?? question?.agent ?? '');
  const where = session?.cwd ?? question?.cwd;
  const inside = html`<${Mark} what=${row.what} />
    <span class="name">${name}</span><span class="who">${who}</span><span class="age">${age(now - row.since)}</span>
    <span class=${`news ${role}`}>${words}</span>
    ${where && html`<span class="where">${folderOf(where, daemon)}</span>`}`;
  if (agent) {
    const hint = agent.auth?.hint ?? agent.hint ?? agent.reason;
    return html`<div class="entry">${inside}${hint && html`<span class="where">${oneLine(hint)}</span>`}</div>`;
  }
  const to = { view: /** @type {const} */ ('session'), agent: session?.agent ?? question?.agent, id: session?.sessionId ?? question?.sessionId };
  return html`<a class="entry" href=${hashOf(to)} aria-current=${isOpen ? 'page' : undefined}>${inside}</a>`;
}

/** @type {[Row['section'], string][]} */
const SECTIONS = [['needs', 'Needs you'], ['working', 'Working'], ['recent', 'Recent']];

/** @param {{store: import('../store.js').Store, rows: Row[]}} props */
export function Inbox({ store, rows }) {
  const { fleet, route, now, daemon } = store;
  const [filter, setFilter] = useState('');
  const [isAll, setAll] = useState(false);
  const fitting = useMemo(() => fitted(rows, filter), [rows, filter]);
  return html`<div class="inbox">
    ${rows.length > 12 && html`<input class="filter" type="search" placeholder="Filter sessions" aria-label="Filter sessions" value=${filter}
      onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} />`}
    ${SECTIONS.map(([section, title]) => {
      const here = fitting.filter((row) => row.section === section);
      if (here.length === 0) return null;
      const few = section === 'recent' && !isAll ? here.slice(0, FEW) : here;
      return html`<section key=${section} class=${`is-${section}`}><h2>${title}${section !== 'recent' && html` <span class="count">${here.length}</span>`}</h2>
        <ul>${nested(few).map(({ row, depth }) => html`<li key=${row.key} class=${depth > 0 ? 'is-child' : ''}><${Guard} what="This row" of=${row}><${RowOf} row=${row} now=${now} daemon=${daemon}
          isOpen=${row.session && route.id === row.session.sessionId && route.agent === row.session.agent} /><//></li>`)}</ul>
        ${few.length < here.length && html`<button type="button" class="quiet" onClick=${() => setAll(true)}>${here.length - few.length} more</button>`}
      </section>`;
    })}
    ${fleet.isKnown && rows.length === 0 && html`<p class="empty">No sessions yet. <a href="#/new">Begin one</a>, or run <code>acpctl run</code> in a terminal.</p>`}
    ${fleet.isKnown && rows.length > 0 && fitting.length === 0 && html`<p class="empty">Nothing fits.</p>`}
    ${!fleet.isKnown && html`<p class="empty">${store.watch.tries > 0 ? 'No connection, and nothing is known in this browser yet.' : 'Reading…'}</p>`}
  </div>`;
}

/** @param {Row[]} rows @param {string} filter */
function fitted(rows, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter(({ session, question, agent }) => {
    const facts = [session?.sessionId, session?.agent, session?.cwd, session?.name, session?.title, question?.agent, agent?.name];
    const all = facts.filter(Boolean).join('\n').toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
