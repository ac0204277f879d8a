// @ts-check
// Views whose code is loaded when they are opened, so that the page itself opens at once.

import { useEffect, useState } from '../lib/hooks.js';
import { html } from './html.js';
import { Top, Trouble } from './parts.js';

/** @param {() => Promise<any>} load fetches the view */
function later(load) {
  /** @type {any} */
  let view;
  /** @param {any} props */
  return function Later(props) {
    const [state, setState] = useState(/** @type {'waits' | 'here' | 'missing'} */ ('waits'));
    useEffect(() => {
      if (view) return;
      load().then((loaded) => {
        view = loaded;
        setState('here');
      }, () => setState('missing'));
    }, []);
    if (view) return html`<${view} ...${props} />`;
    if (state === 'waits') return null;
    return html`<${Missing} />`;
  };
}

/** The view could not be loaded. */
export const Missing = () => html`<div class="dialog"><${Top} title="Not here" />
  <${Trouble} text="This part of the page is not in this browser" hint="load the page again when there is a connection" /></div>`;

export const Conversation = later(() => import('./conversation.js').then((it) => it.Conversation));
export const New = later(() => import('./new.js').then((it) => it.New));
export const Search = later(() => import('./search.js').then((it) => it.Search));
export const Help = later(() => import('./help.js').then((it) => it.Help));
