// @ts-check
// Help, and the settings of this browser.

import { oneLine } from '../text/escape.js';
import { useEffect, useState } from '../lib/hooks.js';
import { kept } from '../store.js';
import { html } from './html.js';
import { pushState, turnOff, turnOn } from '../push.js';
import { KEYS, areKeysOn } from './keys.js';
import { Top, Trouble } from './parts.js';

/** @typedef {import('../store.js').Store} Store */

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
      <${Push} store=${store} />
      <table class="keys"><caption class="unseen">Keys</caption><tbody>${KEYS.map(([key, words]) => html`<tr><th scope="row"><kbd>${key}</kbd></th><td>${words}</td></tr>`)}
        <tr><th scope="row"><kbd>Enter</kbd></th><td>send, or queue; <kbd>Shift Enter</kbd> is a new line</td></tr>
        <tr><th scope="row"><kbd>Ctrl Enter</kbd></th><td>steer the running turn, where the agent can</td></tr></tbody></table>
      <p class="is-dim">This browser is ${oneLine(store.me.name ?? 'signed in')}; it may ${store.me.scopes.join(', ')}.${' '}
        <code>acpctl web token</code> lists browsers and takes them out.</p>
      <button type="button" onClick=${() => store.signOut()}>Sign out</button>
    </div></section>`;
}

/** The switch of notifications. @param {{store: Store}} props */
function Push({ store }) {
  const [state, setState] = useState(/** @type {import('../push.js').State | undefined} */ (undefined));
  const [trouble, setTrouble] = useState('');
  const look = () => pushState(store).then(setState, () => setState({ isOn: false, why: 'acpd is not running.' }));
  useEffect(() => {
    look();
  }, [store.me.push]);
  const change = async (/** @type {any} */ event) => {
    setTrouble('');
    try {
      await (event.target.checked ? turnOn : turnOff)(store);
    } catch (/** @type {any} */ error) {
      setTrouble(error.message);
    }
    await look();
  };
  return html`<div class="field"><label class="check"><input type="checkbox" id="push" checked=${state?.isOn ?? false} disabled=${!state || state.why !== undefined} onChange=${change} />
      Notify me when I am needed</label>
    <p class="is-dim">${state?.why ?? 'When an agent asks, when it is done after more than a minute, and when it was interrupted; never what was said.'}</p>
    ${trouble && html`<${Trouble} text=${trouble} />`}</div>`;
}
