// @ts-check
// Starts the page, and listens to the browser.

import { App } from './ui/app.js';
import { html } from './ui/html.js';
import { Guard } from './ui/parts.js';
import { render } from './lib/preact.js';
import { kept, routeOf, store } from './store.js';

/** The folder of this version's files, if it was built. */
const BUILT = /\/v-[0-9a-f]+\//;

const theme = kept.get('theme');
if (theme) document.documentElement.dataset.theme = theme;

// The code is used at once, and must not stay in the history.
const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
if (code) history.replaceState(null, '', '/');

const root = document.getElementById('app');
if (!root) throw new Error('the page has no place for the app');
store.render = () => render(html`<${Guard} what="The page" hint="open it again" of=${store.now}><${App} store=${store} /><//>`, root);
store.start();
if (code) store.signIn(code);

addEventListener('hashchange', () => store.go(routeOf(location.hash)));
addEventListener('online', () => store.wake());
addEventListener('pageshow', (event) => event.persisted && store.wake());
addEventListener('pagehide', () => store.remember());
document.addEventListener('visibilitychange', () => (document.hidden ? store.remember() : store.wake()));

// The service worker opens the page without a connection. It never keeps files of a development version.
if (BUILT.test(import.meta.url) && 'serviceWorker' in navigator) {
  const only = (/** @type {string} */ url) => {
    if (url !== '/sw.js') throw new TypeError(`${url} is not the service worker`);
    return url;
  };
  const { trustedTypes } = /** @type {any} */ (window);
  const url = trustedTypes ? trustedTypes.createPolicy('acpd-sw', { createScriptURL: only }).createScriptURL('/sw.js') : '/sw.js';
  // A private window may refuse it: then the page needs a connection.
  navigator.serviceWorker.register(url).catch(() => {});
  navigator.serviceWorker.addEventListener('message', ({ data }) => {
    location.hash = data.hash;
  });
}
