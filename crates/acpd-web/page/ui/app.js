// @ts-check
// The whole page: the sign-in, the inbox, and the open view next to it.

import { keyOf } from '../fleet.js';
import { oneLine } from '../text/escape.js';
import { age } from '../text/human.js';
import { useEffect, useMemo, useRef, useState } from '../lib/hooks.js';
import { html } from './html.js';
import { Inbox, nameOf } from './inbox.js';
import { useKeys } from './keys.js';
import { Conversation, Help, Missing, New, Search } from './later.js';
import { Guard, Trouble } from './parts.js';

/** @typedef {import('../store.js').Store} Store */

/** @param {{store: Store}} props */
export function App({ store }) {
  const { fleet, route, now } = store;
  const minute = Math.floor(now / 60_000);
  const rows = useMemo(() => fleet.rows(now), [fleet, fleet.rev, minute]);
  const needs = rows.filter((row) => row.section === 'needs').length;
  const busy = rows.filter((row) => row.section === 'working').length;
  useTitle(store, needs);
  useAnnouncements(store);
  useTicks(store, busy > 0 || store.session?.state.header.working === true);
  const stream = useRef(/** @type {import('./stream.js').Stream | null} */ (null));
  useKeys(store, stream);
  const isHome = route.view === 'inbox';
  // The list is made again only after a change in it, not with each frame of a stream.
  const tick = rows.length > 60 ? Math.floor(now / 10_000) : Math.floor(now / 1000);
  const list = useMemo(() => html`<${Inbox} store=${store} rows=${rows} />`, [rows, route, store.daemon, store.watch.tries > 0, busy > 0 || needs > 0 ? tick : minute]);
  if (store.signed === 'out') return html`<${Door} store=${store} />`;
  return html`${store.isOutdated && html`<div class="newer" role="status"><span>A newer version of this page is here.</span>
      <button type="button" onClick=${() => location.reload()}>Reload</button></div>`}
    ${store.session && html`<a class="skip" href="#prompt" onClick=${toField}>Skip to the prompt</a>`}
    <main class="frame"><nav class=${`side ${isHome ? 'is-here' : ''}`} aria-label="sessions">
      <header class="top"><${isHome ? 'h1' : 'p'} class="brand"><a href="#/">acpd</a><//>
        <a class="button quiet" href="#/search" title="Search (/)"><span aria-hidden="true">⌕</span><span class="unseen">Search</span></a>
        <a class="button quiet" href="#/new" title="New session (n)"><span aria-hidden="true">+</span><span class="unseen">New session</span></a>
        <a class="button quiet" href="#/help" title="Help (?)"><span aria-hidden="true">?</span><span class="unseen">Help and settings</span></a>
      </header>
      ${list}
      <${Connection} store=${store} />
    </nav>
    <div class=${`main ${isHome ? '' : 'is-here'}`}>
      ${route.view === 'new' ? html`<${New} store=${store} />`
        : route.view === 'search' ? html`<${Search} store=${store} />`
        : route.view === 'help' ? html`<${Help} store=${store} />`
        : route.view === 'session' && !store.session ? store.isIncomplete && html`<${Missing} />`
        : store.session ? html`<${Guard} key=${keyOf(store.session.agent, store.session.id)} what="This session" hint=${`acpctl attach ${oneLine(store.session.id)}`} of=${store.session.rev}><${Conversation} store=${store} session=${store.session} stream=${stream} /><//>`
        : html`<div class="welcome">${fleet.isKnown && html`<p>${needs > 0 ? `${needs} need${needs === 1 ? 's' : ''} you` : 'Nothing needs you'}${busy > 0 ? `, ${busy} work${busy === 1 ? 's' : ''}` : ''}.</p>
          <p class="is-dim">Choose a session, or <a href="#/new">begin one</a>.</p>`}</div>`}
    </div></main>`;
}

/** @param {Event} event */
function toField(event) {
  event.preventDefault();
  document.getElementById('prompt')?.focus();
}

/** The state of the connection. @param {{store: Store}} props */
function Connection({ store }) {
  const { watch, daemon, now, fleet } = store;
  const [since, setSince] = useState(0);
  useEffect(() => {
    setSince(watch.isLive ? 0 : Date.now());
  }, [watch.isLive]);
  // A short loss is not shown.
  const isAway = !watch.isLive && since > 0 && now - since > 1000;
  useEffect(() => {
    if (watch.isLive) return undefined;
    const timer = setTimeout(() => store.told(), 1100);
    return () => clearTimeout(timer);
  }, [watch.isLive]);
  const why = watch.why ? `acpd is not running: ${oneLine(watch.why)}` : 'acpd is not running, reconnecting';
  const words = !isAway ? 'live' : navigator.onLine ? why : 'this device is offline';
  return html`<div class=${`connection ${isAway ? 'is-away' : ''}`} role="status">
    <span class="dot" aria-hidden="true"></span><span>${words}${isAway && fleet.recalled !== undefined && `; this is what was known ${age(now - fleet.recalled)} ago`}</span>
    ${!isAway && fleet.hosts.filter(({ error }) => error).map(({ name, error }) => html`<span key=${name} class="is-warning" title=${oneLine(error)}>not reachable: ${oneLine(name)}</span>`)}
    ${!isAway && daemon && html`<span class="is-dim">acpd ${oneLine(daemon.version)}</span>`}</div>`;
}

/** The view of a signed-out browser. @param {{store: Store}} props */
function Door({ store }) {
  const [code, setCode] = useState('');
  return html`<main class="door"><h1>acpd</h1>
    ${store.refused && html`<${Trouble} ...${store.refused} />`}
    <p>Run <code>acpctl web</code> in a terminal and open the link that it shows, or type its code here. A code works once, for two minutes.</p>
    <form onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); if (code.trim()) store.signIn(code.trim().replace(/^.*#code=/, '')); }}>
      <label for="code">Code</label><input id="code" autocomplete="one-time-code" autocapitalize="off" spellcheck=${false} value=${code} onInput=${(/** @type {any} */ event) => setCode(event.target.value)} />
      <button type="submit" class="primary" disabled=${!code.trim()}>Sign in</button></form></main>`;
}

/** Shows the number of needs in the title and the icon. @param {Store} store @param {number} needs */
function useTitle(store, needs) {
  const { session, fleet } = store;
  const row = session && fleet.sessions.get(keyOf(session.agent, session.id));
  const name = row ? `${nameOf(row)} · acpd` : 'acpd';
  useEffect(() => {
    document.title = needs > 0 ? `(${needs}) ${name}` : name;
  }, [needs, name]);
  useEffect(() => {
    document.getElementById('icon')?.setAttribute('href', needs > 0 ? '/icon-needs.svg' : '/icon.svg');
  }, [needs > 0]);
}

/** Announces questions to screen readers. @param {Store} store */
function useAnnouncements({ fleet }) {
  const asked = fleet.questions.size;
  const before = useRef(asked);
  useEffect(() => {
    const loud = document.getElementById('asked');
    if (asked > before.current && loud) loud.textContent = asked === 1 ? 'a question waits for you' : `${asked} questions wait for you`;
    before.current = asked;
  }, [asked]);
}

/** Renders ages again: each second while a session works, else each minute. @param {Store} store @param {boolean} isBusy */
function useTicks(store, isBusy) {
  useEffect(() => {
    const timer = setInterval(() => document.hidden || store.told(), isBusy ? 1000 : 60_000);
    return () => clearInterval(timer);
  }, [isBusy]);
}

