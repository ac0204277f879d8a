// @ts-check
// A new session, the search, and help with the settings.

import { oneLine } from '../fold/escape.js';
import { age } from '../fold/human.js';
import { useEffect, useRef, useState } from '../lib/hooks.js';
import { hashOf, kept } from '../store.js';
import { html } from './html.js';
import { folderOf, nameOf } from './inbox.js';
import { KEYS, areKeysOn } from './keys.js';
import { Trouble } from './parts.js';

/** @typedef {import('../fold/block.js').Json} Json */
/** @typedef {import('../store.js').Store} Store */

/** The head of a view beside the inbox. @param {{title: string}} props */
const Top = ({ title }) => html`<header class="session-head"><a class="button quiet back" href="#/" aria-label="all sessions">‹</a>
  <div class="names"><h1>${title}</h1></div></header>`;

/** The agents that can be used, those in use first. @param {Store} store @returns {Json[]} */
function agentsOf({ fleet, daemon }) {
  const agents = [...fleet.agents.values()].filter((agent) => agent.installed !== false);
  const rank = (/** @type {Json} */ agent) => (agent.name === daemon?.defaultAgent ? 0 : agent.sessions > 0 ? 1 : 2);
  return agents.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

/** @param {{store: Store}} props */
export function New({ store }) {
  const agents = agentsOf(store);
  const recent = [...store.fleet.sessions.values()].sort((a, b) => b.updated - a.updated);
  const folders = [...new Set(recent.map((session) => session.cwd))].slice(0, 12);
  const [agent, setAgent] = useState('');
  const [cwd, setCwd] = useState('');
  const [name, setName] = useState('');
  const [text, setText] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState(/** @type {{text: string, hint?: string} | undefined} */ (undefined));
  const chosen = agents.find((it) => it.name === (agent || agents[0]?.name));
  const where = cwd || folders[0] || '';
  const begin = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setTrouble(undefined);
    try {
      await store.begin({ agent: chosen?.name, cwd: where, name: name.trim(), text });
    } catch (/** @type {any} */ error) {
      setTrouble({ text: error.message, hint: error.hint });
    }
    setBusy(false);
  };
  const may = store.may('prompt');
  return html`<section class="dialog"><${Top} title="New session" />
    <form class="form" onSubmit=${begin}>
      ${!may && html`<${Trouble} text="This browser may not begin sessions" hint=${"its key has no `prompt` scope"} />`}
      ${trouble && html`<${Trouble} text=${trouble.text} hint=${trouble.hint} />`}
      <div class="field"><label for="new-agent">Agent</label>
        <select id="new-agent" value=${chosen?.name} onChange=${(/** @type {any} */ e) => setAgent(e.target.value)}>
          ${agents.map((it) => html`<option value=${it.name}>${oneLine(it.title && it.title !== it.name ? `${it.name} (${it.title})` : it.name)}</option>`)}</select>
        ${chosen && ['needs_login', 'expired'].includes(chosen.auth?.state) && html`<p class="is-warning">wants a login${chosen.auth.hint ? `: ${oneLine(chosen.auth.hint)}` : ''}</p>`}</div>
      <div class="field"><label for="new-cwd">Directory</label>
        <input id="new-cwd" list="folders" value=${where} placeholder="/home/you/project" autocapitalize="off" spellcheck=${false} onInput=${(/** @type {any} */ e) => setCwd(e.target.value)} />
        <datalist id="folders">${folders.map((it) => html`<option value=${it} />`)}</datalist></div>
      <div class="field"><label for="new-name">Name <span class="is-dim">(optional)</span></label>
        <input id="new-name" value=${name} maxlength="100" autocapitalize="off" onInput=${(/** @type {any} */ e) => setName(e.target.value)} /></div>
      <div class="field"><label for="new-text">Prompt</label>
        <textarea id="new-text" rows="6" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea></div>
      <button type="submit" class="primary" disabled=${!may || isBusy || !chosen || !where.startsWith('/')}>${isBusy ? 'Beginning…' : 'Begin'}</button>
    </form></section>`;
}

/** @type {Record<string, string>} */
const SPEAKERS = { user: 'you', agent: 'agent', tool: 'tool' };

/** @param {{store: Store}} props */
export function Search({ store }) {
  const [words, setWords] = useState('');
  const [hits, setHits] = useState(/** @type {Json[] | undefined} */ (undefined));
  const [trouble, setTrouble] = useState(/** @type {{text: string, hint?: string} | undefined} */ (undefined));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  // The person asked for the search, by a key or a press.
  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    if (!words.trim()) {
      setHits(undefined);
      return undefined;
    }
    let isWanted = true;
    const timer = setTimeout(() => {
      store.search(words).then((found) => {
        if (isWanted) setHits(found);
        setTrouble(undefined);
      }, (error) => isWanted && setTrouble({ text: error.message, hint: error.hint }));
    }, 200);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [words]);
  return html`<section class="dialog"><${Top} title="Search" />
    <div class="form"><input ref=${field} type="search" value=${words} aria-label="words to find" placeholder="What was said, by you and by agents"
      onInput=${(/** @type {any} */ e) => setWords(e.target.value)} />
      ${trouble && html`<${Trouble} text=${trouble.text} hint=${trouble.hint} />`}
      <ul class="hits" aria-live="polite">${hits?.map(({ session, seq, at, by, snippet }) => html`<li key=${`${session.sessionId}/${seq}`}>
        <a class="entry" href=${hashOf({ view: 'session', agent: session.agent, id: session.sessionId, seq })}>
          <span class="name">${nameOf(session)}</span><span class="who">${SPEAKERS[by] ?? by} · ${oneLine(session.agent)}</span><span class="age">${age(store.now - at)}</span>
          <span class="news">${snippet.map((/** @type {Json} */ part) => (part.hit ? html`<mark>${oneLineKeepingEnds(part.text)}</mark>` : oneLineKeepingEnds(part.text)))}</span>
          <span class="where">${folderOf(session.cwd, store.daemon)}</span></a></li>`)}</ul>
      ${hits?.length === 0 && html`<p class="empty">Nothing was found. A turn can be found when it has ended.</p>`}</div></section>`;
}

/** @param {string} text */
const oneLineKeepingEnds = (text) => `${/^\s/.test(text) ? ' ' : ''}${oneLine(text)}${/\s$/.test(text) ? ' ' : ''}`;

/** @param {{store: Store}} props */
export function Help({ store }) {
  const [theme, setTheme] = useState(kept.get('theme') ?? '');
  const [areOn, setOn] = useState(areKeysOn());
  const choose = (/** @type {string} */ now) => {
    setTheme(now);
    kept.set('theme', now || undefined);
    if (now) document.documentElement.dataset.theme = now;
    else delete document.documentElement.dataset.theme;
  };
  return html`<section class="dialog"><${Top} title="Help and settings" />
    <div class="form">
      <div class="field"><label for="theme">Colours</label><select id="theme" value=${theme} onChange=${(/** @type {any} */ e) => choose(e.target.value)}>
        <option value="">as the system</option><option value="light">light</option><option value="dark">dark</option></select></div>
      <label class="check"><input type="checkbox" checked=${areOn} onChange=${(/** @type {any} */ e) => { setOn(e.target.checked); kept.set('keys', e.target.checked ? undefined : 'off'); }} /> Keys</label>
      <table class="keys"><caption class="unseen">Keys</caption><tbody>${KEYS.map(([key, words]) => html`<tr><th scope="row"><kbd>${key}</kbd></th><td>${words}</td></tr>`)}
        <tr><th scope="row"><kbd>Enter</kbd></th><td>send, or queue; <kbd>Shift Enter</kbd> is a new line</td></tr>
        <tr><th scope="row"><kbd>Ctrl Enter</kbd></th><td>steer the running turn, where the agent can</td></tr></tbody></table>
      <p class="is-dim">This browser is ${oneLine(store.me.name ?? 'signed in')}; it may ${store.me.scopes.join(', ')}.${' '}
        <code>acpctl web token</code> lists browsers and takes them out.</p>
      <button type="button" onClick=${() => store.signOut()}>Sign out</button>
    </div></section>`;
}
