// @ts-check
// Starts the page: who is there, and what the browser tells.

import { App } from './ui/app.js';
import { html } from './ui/html.js';
import { render } from './lib/preact.js';
import { kept, routeOf, store } from './store.js';

const theme = kept.get('theme');
if (theme) document.documentElement.dataset.theme = theme;

// The code is used at once, and must not stay in the history.
const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
if (code) history.replaceState(null, '', '/');

const root = document.getElementById('app');
if (!root) throw new Error('the page has no place for the app');
store.render = () => render(html`<${App} store=${store} />`, root);
store.start();
if (code) store.signIn(code);

addEventListener('hashchange', () => store.go(routeOf(location.hash)));
addEventListener('online', () => store.wake());
addEventListener('pageshow', (event) => event.persisted && store.wake());
document.addEventListener('visibilitychange', () => document.hidden || store.wake());
