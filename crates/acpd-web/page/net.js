// @ts-check
// A connection to acpd that comes back: JSON-RPC messages over a WebSocket, a message in each frame.
//
//   closed ──start──▶ connecting ──open──▶ greeting ──greeted──▶ live
//     ▲                   ▲                   │ lost               │ lost, or silent when checked
//     └──stop, 4401───────┴──── waiting ◀─────┴────────────────────┘

/** @typedef {import('./lookup.js').Json} Json */
/** @typedef {'connecting' | 'live' | 'waiting' | 'signed-out' | 'closed'} Phase */

/** Pauses before another try. */
const PAUSES = [0, 250, 500, 1000, 2000, 4000, 8000];
/** A connection that does not answer for so long is lost. */
const SILENT = 3000;
/** Close codes of the server. */
const SIGNED_OUT = 4401;

/** An error that acpd has answered, or that the connection was lost. */
export class Refusal extends Error {
  /** @param {string} message @param {{code?: number, reason?: string, hint?: string, stderr?: string, lost?: boolean}} [more] */
  constructor(message, more = {}) {
    super(message);
    this.code = more.code;
    this.reason = more.reason;
    this.hint = more.hint;
    /** The last lines that the agent wrote to stderr. */
    this.stderr = more.stderr;
    /** Whether the answer did not come, whatever became of the request. */
    this.lost = more.lost ?? false;
  }
}

/** An error for a person: why, what to do, and what the agent printed last.
 * @typedef {{text: string, hint?: string, output?: string}} Trouble */

/** @param {any} error @returns {Trouble} */
export const troubleOf = ({ message, hint, stderr }) => ({ text: message, hint, output: stderr });

/** A connection that comes back. */
export class Link {
  /**
   * @param {object} is
   * @param {() => string} is.key the key of this browser
   * @param {(link: Link) => Promise<void>} is.greet says what has to be said first, each time
   * @param {(message: Json) => void} is.took takes what is no answer
   * @param {() => void} is.told something about the connection has changed
   */
  constructor({ key, greet, took, told }) {
    this.key = key;
    this.greet = greet;
    this.took = took;
    this.told = told;
    /** @type {Phase} */
    this.phase = 'closed';
    /** Why it was lost, in words. */
    this.why = '';
    /** @type {WebSocket | undefined} */
    this.socket = undefined;
    /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Refusal) => void}>} */
    this.open = new Map();
    this.lastId = 0;
    this.tries = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  get isLive() {
    return this.phase === 'live';
  }

  start() {
    if (this.phase !== 'closed') return;
    this.connect();
  }

  stop() {
    clearTimeout(this.timer);
    this.drop('');
    this.become('closed');
  }

  /** Asks whether the other end is there, or tries at once. After a sleep a connection may only look alive. */
  check() {
    if (this.phase === 'waiting') this.connect();
    if (this.phase !== 'live') return;
    const socket = this.socket;
    const timer = setTimeout(() => {
      if (this.socket === socket) this.lost('it did not answer');
    }, SILENT);
    this.request('_acpd/ping').catch(() => {}).finally(() => clearTimeout(timer));
  }

  /** @param {string} method @param {Json} [params] @returns {Promise<any>} */
  request(method, params) {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      if (!this.send({ jsonrpc: '2.0', id, method, params })) {
        reject(new Refusal('acpd is not connected', { lost: true, hint: 'it is tried again by itself' }));
        return;
      }
      this.open.set(id, { resolve, reject });
    });
  }

  /** @param {Json} message @returns {boolean} whether it was sent */
  send(message) {
    if (this.socket?.readyState !== 1) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** @param {Phase} phase */
  become(phase) {
    this.phase = phase;
    this.told();
  }

  connect() {
    clearTimeout(this.timer);
    this.become('connecting');
    const url = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/page`;
    const socket = new WebSocket(url, ['acp.v1', `bearer.${this.key()}`]);
    this.socket = socket;
    /** @param {() => void} act */
    const own = (act) => {
      if (this.socket === socket) act();
    };
    // A handshake can hang for minutes.
    this.timer = setTimeout(() => own(() => this.lost('it did not answer')), 10_000);
    socket.onopen = () => own(() => {
      clearTimeout(this.timer);
      this.greet(this).then(
        () => own(() => {
          this.tries = 0;
          this.why = '';
          this.become('live');
        }),
        (error) => own(() => this.lost(error.message)),
      );
    });
    socket.onmessage = (event) => own(() => this.message(event.data));
    socket.onclose = (event) => own(() => {
      if (event.code === SIGNED_OUT) {
        this.drop('signed out');
        this.become('signed-out');
      } else {
        this.lost(event.reason);
      }
    });
  }

  /** @param {string} text */
  message(text) {
    /** @type {Json} */
    let message;
    try {
      message = JSON.parse(text);
    } catch {
      return;
    }
    if (message.method !== undefined) {
      this.took(message);
      return;
    }
    const waiting = this.open.get(message.id);
    if (!waiting) return;
    this.open.delete(message.id);
    const { error } = message;
    const own = error?.data?._acpd;
    if (error) waiting.reject(new Refusal(error.message ?? 'it failed', { code: error.code, reason: own?.reason, hint: own?.hint ?? error.data?.hint, stderr: own?.stderr }));
    else waiting.resolve(message.result);
  }

  /** The connection is lost: another one is made. @param {string} why */
  lost(why) {
    this.drop(why);
    this.why = why;
    const pause = PAUSES[Math.min(this.tries++, PAUSES.length - 1)];
    this.timer = setTimeout(() => this.connect(), pause * (0.8 + Math.random() / 2.5));
    this.become('waiting');
  }

  /** Forgets the connection, and whoever waits for an answer of it is told. @param {string} why */
  drop(why) {
    const socket = this.socket;
    this.socket = undefined;
    clearTimeout(this.timer);
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    const waiting = [...this.open.values()];
    this.open.clear();
    for (const { reject } of waiting) reject(new Refusal(why || 'the connection was lost', { lost: true }));
  }
}
