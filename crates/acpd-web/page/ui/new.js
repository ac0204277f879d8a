// @ts-check
// A new session.

import { begin as beginSession } from '../begin.js';
import { oneLine } from '../text/escape.js';
import { troubleOf } from '../net.js';
import { useEffect, useRef, useState } from '../lib/hooks.js';
import { EVERYTHING } from '../session.js';
import { Attach, Attached, blocksOf, useFiles } from './files.js';
import { html } from './html.js';
import { Top, Trouble } from './parts.js';

/** @typedef {import('../lookup.js').Json} Json */
/** @typedef {import('../store.js').Store} Store */

/** The agents that are installed, those in use first. @param {Store} store @param {Set<string>} installed
 * @returns {Json[]} */
function agentsOf({ fleet, daemon }, installed) {
  const agents = [...fleet.agents.values()].filter((agent) => installed.has(agent.name));
  const rank = (/** @type {Json} */ agent) => (agent.name === daemon?.defaultAgent ? 0 : agent.sessions > 0 ? 1 : 2);
  return agents.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

/** @param {{store: Store}} props */
export function New({ store }) {
  const [installed, setInstalled] = useState(/** @type {Set<string>} */ (new Set()));
  useEffect(() => {
    if (!store.watch.isLive) return;
    store.watch.request('_acpd/agent/list').then(({ agents }) => {
      setInstalled(new Set(agents.filter((/** @type {Json} */ it) => it.installed !== false).map((/** @type {Json} */ it) => it.name)));
    }, () => {});
  }, [store.watch.isLive]);
  const agents = agentsOf(store, installed);
  const recent = [...store.fleet.sessions.values()].sort((a, b) => b.updated - a.updated);
  const folders = [...new Set(recent.map((session) => session.cwd))].slice(0, 12);
  const [agent, setAgent] = useState('');
  const [cwd, setCwd] = useState('');
  const [name, setName] = useState('');
  const [isApart, setApart] = useState(false);
  const [text, setText] = useState('');
  // The agent's capabilities are known only after its start.
  const files = useFiles(EVERYTHING);
  const first = useRef(/** @type {HTMLElement | null} */ (null));
  // The user opened the form, by a key or a press.
  useEffect(() => first.current?.focus(), []);
  const [isBusy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState(/** @type {import('../net.js').Trouble | undefined} */ (undefined));
  const chosen = agents.find((it) => it.name === (agent || agents[0]?.name));
  const where = cwd || folders[0] || '';
  const begin = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setTrouble(undefined);
    try {
      await beginSession(store, { agent: chosen?.name, cwd: where, name: name.trim(), worktree: isApart, blocks: blocksOf(text, files), text });
    } catch (/** @type {any} */ error) {
      setTrouble(troubleOf(error));
    }
    setBusy(false);
  };
  const may = store.may('prompt');
  return html`<section class="dialog"><${Top} title="New session" />
    <form class="form" onSubmit=${begin}>
      ${!may && html`<${Trouble} text="This browser may not begin sessions" hint=${"its key has no `prompt` scope"} />`}
      ${trouble && html`<${Trouble} ...${trouble} />`}
      <div class="field"><label for="new-agent">Agent</label>
        <select id="new-agent" ref=${first} value=${chosen?.name} onChange=${(/** @type {any} */ e) => setAgent(e.target.value)}>
          ${agents.map((it) => html`<option value=${it.name}>${oneLine(it.title && it.title !== it.name ? `${it.name} (${it.title})` : it.name)}</option>`)}</select>
        ${chosen && ['needs_login', 'expired'].includes(chosen.auth?.state) && html`<p class="is-warning">wants a login${chosen.auth.hint ? `: ${oneLine(chosen.auth.hint)}` : ''}</p>`}</div>
      <div class="field"><label for="new-cwd">Directory</label>
        <input id="new-cwd" list="folders" value=${where} placeholder="/home/you/project" autocapitalize="off" spellcheck=${false} onInput=${(/** @type {any} */ e) => setCwd(e.target.value)} />
        <datalist id="folders">${folders.map((it) => html`<option value=${it} />`)}</datalist></div>
      <div class="field"><label for="new-name">Name <span class="is-dim">(optional)</span></label>
        <input id="new-name" value=${name} maxlength="100" autocapitalize="off" onInput=${(/** @type {any} */ e) => setName(e.target.value)} /></div>
      <div class="field"><label class="check"><input type="checkbox" id="new-worktree" checked=${isApart} onChange=${(/** @type {any} */ e) => setApart(e.target.checked)} aria-describedby="new-worktree-is" /> In a git worktree of its own</label>
        <p id="new-worktree-is" class="is-dim">${isApart ? `On a new branch, acpd/${oneLine(name.trim()) || 'NUMBER'}, beside the repository. What is not committed is not in it.` : 'Its changes stay apart from yours, on a branch.'}</p></div>
      <div class="field"><label for="new-text">Prompt</label>
        <textarea id="new-text" rows="6" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea></div>
      <div class="buttons"><${Attach} files=${files} disabled=${!may} /></div><${Attached} files=${files} />
      <button type="submit" class="primary" disabled=${!may || isBusy || !chosen || !where.startsWith('/')}>${isBusy ? 'Beginning…' : 'Begin'}</button>
    </form></section>`;
}
