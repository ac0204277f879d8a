// @ts-check
// The state of the page, except for journals: sign-in, fleet, open session, route. A change renders
// once per frame.

import { Fleet, keyOf } from './fleet.js';
import { Link } from './net.js';

/** @typedef {import('./session.js').Session} Session */

/** @typedef {import('./lookup.js').Json} Json */
/** The open view. @typedef {{view: 'inbox' | 'session' | 'new' | 'search' | 'help', agent?: string, id?: string,
 *   seq?: number, words?: string}} Route */

/** Sessions whose connections are kept. */
const KEPT = 2;
/** Sessions whose last state is remembered. */
const MOST_KNOWN = 100;

/** The version of the running page, which is in the addresses of its files. */
const VERSION = /\/(v-[0-9a-f]+)\//.exec(import.meta.url)?.[1];

/** Text in the browser's storage. */
export const kept = {
  /** @param {string} name */
  get(name) {
    try {
      return localStorage.getItem(`acpd.${name}`) ?? undefined;
    } catch {
      return undefined;
    }
  },
  /** @param {string} name @param {string | undefined} value */
  set(name, value) {
    try {
      if (value === undefined) localStorage.removeItem(`acpd.${name}`);
      else localStorage.setItem(`acpd.${name}`, value);
    } catch {
      // A private window may have no storage: then closing the page forgets the text.
    }
  },
};

export class Store {
  constructor() {
    this.fleet = new Fleet();
    /** The server's data about this browser. @type {{name?: string, scopes: string[], version?: string, place?: string, push?: boolean}} */
    this.me = JSON.parse(kept.get('me') ?? '{"scopes":[]}');
    this.key = kept.get('key');
    /** @type {'in' | 'out'} */
    this.signed = this.key ? 'in' : 'out';
    /** The server has another version of the page. */
    this.isOutdated = false;
    /** The code of the opened view could not be loaded. */
    this.isIncomplete = false;
    /** Why the browser is signed out. @type {{text: string, hint?: string} | undefined} */
    this.refused = undefined;
    /** The daemon's own state. @type {Json | undefined} */
    this.daemon = undefined;
    /** @type {Session[]} the open one first */
    this.sessions = [];
    /** @type {Route} */
    this.route = { view: 'inbox' };
    /** The view below a view on top of it. @type {Route} */
    this.before = this.route;
    /** Ends of closed questions. @type {Map<string, string>} */
    this.ended = new Map();
    this.now = Date.now();
    /** @type {() => void} */
    this.render = () => {};
    this.isPlanned = false;
    this.watch = new Link({
      key: () => this.key ?? '', told: () => this.told(), greet: (link) => this.greet(link),
      took: ({ method, params }) => {
        if (method === '_acpd/changed') this.fleet.changed(params);
        this.told();
      },
    });
  }

  /** Renders a change with the next frame. */
  told() {
    if (this.watch.phase === 'signed-out' && this.signed === 'in') this.signedOut({ text: 'this browser was signed out' });
    if (this.isPlanned) return;
    this.isPlanned = true;
    const show = () => {
      this.isPlanned = false;
      this.now = Date.now();
      this.render();
    };
    // A page in the background has no frames, but shows a title.
    if (document.hidden) setTimeout(show, 200);
    else requestAnimationFrame(show);
  }

  /** @param {Link} link */
  async greet(link) {
    if (link.tries > 0) this.readMe();
    this.fleet.snapshot(await link.request('_acpd/watch'));
    link.request('_acpd/status').then(({ daemon }) => {
      this.daemon = daemon;
      this.told();
    }, () => {});
  }

  /** @param {'watch' | 'prompt' | 'answer'} scope */
  may(scope) {
    return this.me.scopes.includes(scope);
  }

  get session() {
    const { view, agent, id } = this.route;
    return view === 'session' ? this.sessions.find((it) => it.agent === agent && it.id === id) : undefined;
  }

  start() {
    try {
      this.fleet.recall(JSON.parse(kept.get('known') ?? ''));
    } catch {
      // Nothing is remembered, or another version wrote it.
    }
    this.go(routeOf(location.hash));
    if (this.signed === 'in') {
      this.watch.start();
      this.readMe();
    }
  }

  async readMe() {
    try {
      const answer = await fetch('/me', { headers: { authorization: `Bearer ${this.key}` } });
      if (answer.status === 401) {
        this.signedOut(textOf(await answer.json(), 'this browser was signed out'));
      } else if (answer.ok) {
        this.knowMe(await answer.json());
      }
    } catch {
      // The server is away, which the connections report.
    }
  }

  /** @param {Json} me */
  knowMe({ name, scopes, version, place, page, push }) {
    if (VERSION && page && page !== VERSION) {
      this.isOutdated = true;
      navigator.serviceWorker?.getRegistration().then((it) => it?.update()).catch(() => {});
    }
    this.me = { name, scopes: scopes ?? [], version, place, push };
    kept.set('me', JSON.stringify(this.me));
    this.told();
  }

  /** @param {string} code */
  async signIn(code) {
    try {
      const answer = await fetch('/sign-in', {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code }),
      });
      const body = await answer.json();
      if (!answer.ok) {
        // An old link does not sign out a browser.
        if (this.signed === 'out') this.signedOut(textOf(body, 'the code was refused'));
        return;
      }
      this.key = body.key;
      kept.set('key', body.key);
      this.knowMe(body);
      this.signed = 'in';
      this.refused = undefined;
      this.watch.start();
      this.readMe();
      this.go(this.route);
    } catch {
      this.refused = { text: 'the server did not answer', hint: 'is `acpctl web` running?' };
      this.told();
    }
  }

  async signOut() {
    // The push service forgets the subscription here, acpd's server with the token.
    const worker = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
    await worker?.pushManager?.getSubscription().then((it) => it?.unsubscribe()).catch(() => {});
    await fetch('/sign-out', { method: 'POST', headers: { authorization: `Bearer ${this.key}` } }).catch(() => {});
    this.signedOut({ text: 'you signed out' });
  }

  /** @param {{text: string, hint?: string}} why */
  signedOut(why) {
    this.signed = 'out';
    this.key = undefined;
    this.refused = why;
    for (const name of ['key', 'known', 'push']) kept.set(name, undefined);
    this.watch.stop();
    for (const session of this.sessions.splice(0)) session.close();
    this.fleet = new Fleet();
    this.told();
  }

  /** @param {Route} route */
  go(route) {
    this.route = route;
    if (['inbox', 'session'].includes(route.view)) this.before = route;
    if (route.view === 'session' && this.signed === 'in') this.openSession(route.agent ?? '', route.id ?? '');
    this.told();
  }

  /** Leaves a view on top of another one. */
  back() {
    if (this.route !== this.before) navigate(this.before);
  }

  /** Stores the state for a start without a connection. */
  remember() {
    const { fleet, watch } = this;
    if (this.signed === 'out' || !fleet.isKnown || fleet.recalled !== undefined) return;
    kept.set('known', JSON.stringify({ at: watch.isLive ? Date.now() : fleet.at, sessions: fleet.newest(MOST_KNOWN) }));
  }

  /** @param {string} agent @param {string} id */
  async openSession(agent, id) {
    /** @param {Session} it */
    const isIt = (it) => it.agent === agent && it.id === id && it.phase !== 'over';
    const row = this.fleet.sessions.get(keyOf(agent, id));
    const made = this.sessions.some(isIt) ? undefined : await this.sessionOf(agent, id, row).catch(() => undefined);
    // Another call may have made the session meanwhile.
    const open = this.sessions.find(isIt) ?? made;
    this.isIncomplete = !open;
    if (!open) this.told();
    if (!open || this.route.id !== id || this.route.agent !== agent || this.signed === 'out') return;
    this.sessions = [open, ...this.sessions.filter((it) => !isIt(it))];
    for (const old of this.sessions.splice(KEPT)) old.close();
    open.open();
    this.told();
  }

  /** @param {string} agent @param {string} id @param {Json} [row] */
  async sessionOf(agent, id, row) {
    // The first session loads the code of sessions and of their view.
    const [{ Session }] = await Promise.all([import('./session.js'), import('./ui/conversation.js')]);
    const place = this.me.place ?? '';
    return new Session({ agent, id, row, place, key: () => this.key ?? '', told: () => this.told() });
  }

  /** @param {string} id @param {Json} answer */
  answer(id, answer) {
    const by = { name: 'acpd-web', title: 'the page', place: this.me.place };
    return this.watch.request('_acpd/interaction/answer', { id, answer, by });
  }

  /** @param {string} words */
  async search(words) {
    const terms = words.match(/"[^"]+"|\S+/g)?.map((it) => it.replaceAll('"', '')).filter(Boolean).slice(0, 64) ?? [];
    if (terms.length === 0) return [];
    // The last word may be incomplete.
    const params = { words: terms.map((it, at) => (at === terms.length - 1 && !it.endsWith('*') ? `${it}*` : it)), limit: 50 };
    return (await this.watch.request('_acpd/session/search', params)).hits;
  }

  /** Checks connections when the page is visible again, or the network is back. */
  wake() {
    for (const link of [this.watch, ...this.sessions.map((it) => it.link)]) link.check();
  }
}

/** @param {Json} body @param {string} otherwise */
const textOf = (body, otherwise) => ({ text: body?.error ?? otherwise, hint: body?.hint });

/** @param {string} hash @returns {Route} */
export function routeOf(hash) {
  const [view, agent, id, seq, words] = hash.replace(/^#\//, '').split('/').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return '';
    }
  });
  if (view === 's' && agent && id) return { view: 'session', agent, id, seq: Number(seq) || undefined, words };
  if (view === 'new' || view === 'search' || view === 'help') return { view };
  return { view: 'inbox' };
}

/** @param {Route} route */
export function hashOf({ view, agent, id, seq, words }) {
  if (view === 'inbox') return '#/';
  if (view !== 'session') return `#/${view}`;
  const line = seq ? [seq, ...(words ? [words] : [])] : [];
  return `#/${['s', agent ?? '', id ?? '', ...line].map(encodeURIComponent).join('/')}`;
}

/** @param {Route} route */
export const navigate = (route) => {
  location.hash = hashOf(route);
};

export const store = new Store();
