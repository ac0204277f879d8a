// @ts-check
// The open session: head, stream, open question, and prompt field.

import { plain, textOf } from '../blocks.js';
import { keyOf } from '../fleet.js';
import { oneLine } from '../text/escape.js';
import { count, money } from '../text/human.js';
import { useEffect, useRef, useState } from '../lib/hooks.js';
import { html } from './html.js';
import { folderOf, nameOf } from './inbox.js';
import { Guard, Trouble } from './parts.js';
import { Prompt } from './prompt.js';
import { Question } from './question.js';
import { Stream } from './stream.js';

/** @typedef {import('../lookup.js').Json} Json */
/** @typedef {import('../store.js').Store} Store */
/** @typedef {import('../session.js').Session} Session */

/** Pause before the next question (ms). */
const PAUSE = 700;

/** @param {{store: Store, session: Session, stream: {current: Stream | null}}} props */
export function Conversation({ store, session, stream }) {
  const { fleet, now, daemon, route } = store;
  const key = keyOf(session.agent, session.id);
  const row = fleet.sessions.get(key);
  const asked = fleet.questionsOf(key);
  const isWorking = session.state.header.working || (row && row.turn.state !== 'idle');
  useAnnouncements(session);
  // Shows the line of a search hit as soon as it is read.
  useEffect(() => {
    const { seq, words } = route;
    if (!seq || session.phase !== 'live') return;
    session.reach(seq).then(() => requestAnimationFrame(() => stream.current?.showLine(seq, words)));
  }, [route.seq, route.words, session.phase]);
  // The row has only the number of queued prompts.
  useEffect(() => {
    if (session.phase === 'live') session.readQueue();
  }, [row?.queued, session.phase]);
  return html`<section class="conversation" aria-label=${nameOf(row) || session.id}>
    <${Guard} what="The head of this session" of=${session.rev}><${Head} store=${store} session=${session} row=${row} where=${folderOf(session.cwd, daemon)} /><//>
    ${session.phase === 'over' && html`<${Trouble} text=${session.why} />`}
    ${row?.reason && ['blocked', 'lost'].includes(row.state) && html`<${Trouble} text=${oneLine(row.reason)} hint=${row.hint && oneLine(row.hint)} />`}
    <${Stream} handle=${stream} session=${session} now=${now} version=${session.rev}
      childOf=${(/** @type {string} */ name) => fleet.childOf(key, session.cwd, name)} />
    <${Away} session=${session} now=${now} />
    <${Guard} what="A question" hint="answer it in a terminal: acpctl pending" of=${asked[0]}><${Questions} store=${store} session=${session} asked=${asked} /><//>
    <${Prompt} session=${session} row=${row} mayPrompt=${store.may('prompt')} isWorking=${isWorking} onSent=${() => stream.current?.toEnd()} />
  </section>`;
}

/** Announces ends, and now and then the running block, to screen readers. @param {Session} session */
function useAnnouncements(session) {
  const { working } = session.state.header;
  const before = useRef(working);
  /** @param {string} words */
  const say = (words) => {
    const said = document.getElementById('said');
    if (said) said.textContent = words;
  };
  useEffect(() => {
    if (before.current && !working) {
      const end = session.state.lastOf(({ kind }) => kind === 'turn');
      say(end ? plain(end.line) : 'the turn is over');
    }
    before.current = working;
    if (!working) return undefined;
    const timer = setInterval(() => {
      const now = session.state.lastOf(({ progress }) => progress === 'running');
      if (now) say((now.line ? plain(now.line) : textOf(now)).slice(0, 200));
    }, 10_000);
    return () => clearInterval(timer);
  }, [working, session]);
}

/** The notice of a lost connection. @param {{session: Session, now: number}} props */
function Away({ session, now }) {
  const since = useRef(0);
  const isAway = session.phase === 'live' && !session.link.isLive;
  if (!isAway) since.current = 0;
  else since.current ||= now;
  useEffect(() => {
    if (!isAway) return undefined;
    const timer = setTimeout(() => session.told(), 1100);
    return () => clearTimeout(timer);
  }, [isAway]);
  if (!isAway || now - since.current < 1000) return null;
  return html`<div class="away" role="status">offline: what comes meanwhile is read when acpd is back</div>`;
}

/** @param {{store: Store, session: Session, row?: Json, where: string}} props */
function Head({ store, session, row, where }) {
  const { header } = session.state;
  const [isOpen, setOpen] = useState(false);
  const usage = header.usage ?? row?.usage;
  const facts = [
    usage?.size > 0 && `${Math.round(100 * usage.used / usage.size)}% of ${count(usage.size)}`,
    usage?.cost && money(usage.cost),
    row && row.clients > 1 && `${row.clients} here`,
  ].filter(Boolean);
  const model = session.state.option('model')?.valueName;
  const mode = session.state.option('mode')?.valueName ?? header.modeName;
  return html`<header class="session-head">
    <a class="button quiet back" href="#/" aria-label="all sessions">‹</a>
    <div class="names"><h1>${nameOf(row) || oneLine(session.id)}</h1>
      <p class="is-dim">${oneLine(session.agent)} · <span class="where">${where}</span></p></div>
    <span class="facts is-dim">${facts.join(' · ')}</span>
    <button type="button" class="button options-button" aria-expanded=${isOpen} aria-haspopup="true" disabled=${!store.may('answer')}
      title=${store.may('answer') ? 'Mode, model, options' : 'This browser may set no modes: its key has no `answer` scope'}
      onClick=${() => { setOpen(!isOpen); if (!isOpen) session.try(() => session.promote()); }}>
      <span class="label">${[mode, model].filter(Boolean).join(' · ') || 'Options'}</span> <span aria-hidden="true">▾</span></button>
    ${isOpen && html`<${Options} session=${session} store=${store} onClose=${() => setOpen(false)} />`}
  </header>`;
}

/** Modes, models and other options. @param {{session: Session, store: Store, onClose: () => void}} props */
function Options({ session, store, onClose }) {
  const { modes, mode, options } = session.state.header;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    /** @param {any} event */
    const leave = (event) => {
      const isOutside = event.type === 'keydown' ? event.key === 'Escape' : !box.current?.parentElement?.contains(event.target);
      if (isOutside) onClose();
    };
    addEventListener('pointerdown', leave);
    addEventListener('keydown', leave);
    return () => {
      removeEventListener('pointerdown', leave);
      removeEventListener('keydown', leave);
    };
  }, []);
  // Some agents report their modes as an option, too.
  const others = options.filter((/** @type {Json} */ option) => modes.length === 0 || option.category !== 'mode');
  return html`<div class="menu" ref=${box}>
    ${modes.length > 0 && html`<label>Mode<select value=${mode} onChange=${(/** @type {any} */ e) => session.setMode(e.target.value)}>
      ${modes.map((/** @type {Json} */ it) => html`<option value=${it.id}>${it.name}</option>`)}</select></label>`}
    ${others.map((/** @type {Json} */ option) => typeof option.value === 'boolean'
      ? html`<label class="check"><input type="checkbox" checked=${option.value} onChange=${(/** @type {any} */ e) => session.setOption(option.id, e.target.checked)} /> ${option.name}</label>`
      : html`<label>${option.name}<select value=${option.value} onChange=${(/** @type {any} */ e) => session.setOption(option.id, e.target.value)}>
        ${option.choices.map((/** @type {Json} */ it) => html`<option value=${it.value}>${it.name}</option>`)}</select></label>`)}
    ${modes.length === 0 && others.length === 0 && html`<p class="is-dim">${session.isController ? 'This agent offers no options.' : 'Reading…'}</p>`}
    <p class="is-dim id">${oneLine(session.id)}</p>
  </div>`;
}

/** One open question at a time, and the end of the last one.
 * @param {{store: Store, session: Session, asked: Json[]}} props */
function Questions({ store, session, asked }) {
  const [current, setCurrent] = useState(/** @type {Json | undefined} */ (asked[0]));
  const [over, setOver] = useState(/** @type {string | undefined} */ (undefined));
  const live = current && asked.find((it) => it.id === current.id);
  useEffect(() => {
    if (live) {
      if (live !== current) setCurrent(live);
      return undefined;
    }
    if (current) {
      const next = asked.find((it) => it.question.changed > 0 && it.question.title === current.question.title);
      if (next) {
        // The same call, asked again.
        setCurrent(next);
        return undefined;
      }
      setOver(endOf(session, current.id));
    }
    // The finger that answered this question must not answer the next one.
    const timer = setTimeout(() => {
      setCurrent(asked[0]);
      if (asked.length > 0) setOver(undefined);
    }, current ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [asked.map((it) => it.id).join(' '), live, current?.id]);
  useEffect(() => {
    if (!over || asked.length > 0) return undefined;
    const timer = setTimeout(() => setOver(undefined), 4000);
    return () => clearTimeout(timer);
  }, [over, asked.length]);
  if (!live && !over) return null;
  if (!live) return html`<div class="question-over" role="status">${over}</div>`;
  const number = asked.indexOf(live) + 1;
  return html`<div class="question-place">
    <${Question} key=${live.id} asked=${live} number=${number} of=${asked.length} now=${store.now} mayAnswer=${store.may('answer')}
      folder=${session.cwd} answer=${(/** @type {Json} */ answer) => store.answer(live.id, answer)} />
  </div>`;
}

/** The end of a question. @param {Session} session @param {string} id */
function endOf(session, id) {
  for (const turn of session.state.turns.slice(-3)) {
    const block = turn.blocks.findLast(({ asked }) => asked === id);
    if (block?.answer) return block.answer;
  }
  return 'this question is over';
}

