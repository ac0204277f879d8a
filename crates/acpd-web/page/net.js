// @ts-check
// A connection to acpd that is made again when it is lost: JSON-RPC over a WebSocket, a message in each frame.
//
//   closed ──start──▶ connecting ──open──▶ greeting ──greeted──▶ live
//     ▲                   ▲                   │ lost               │ lost, or silent when checked
//     └──stop, 4401───────┴──── waiting ◀─────┴────────────────────┘

/** @typedef {import('./lookup.js').Json} Json */
/** @typedef {'connecting' | 'live' | 'waiting' | 'signed-out' | 'closed'} Phase */

/** Pauses before another try (ms). */
const PAUSES = [0, 250, 500, 1000, 2000, 4000, 8000];
/** Time without an answer after which a connection is lost (ms). */
const SILENT = 3000;
/** The server's close code of a revoked token. */
const SIGNED_OUT = 4401;

/** An error of acpd, or of a lost connection. */
export class Refusal extends Error {
  /** @param {string} message @param {{code?: number, reason?: string, hint?: string, stderr?: string, lost?: boolean}} [more] */
  constructor(message, more = {}) {
    super(message);
    this.code = more.code;
    this.reason = more.reason;
    this.hint = more.hint;
    this.stderr = more.stderr;
    /** The connection was lost before the answer; the outcome of the request is unknown. */
    this.lost = more.lost ?? false;
  }
}

/** An error for the user: reason, way out, and last output of the agent.
 * @typedef {{text: string, hint?: string, output?: string}} Trouble */

/** @param {any} error @returns {Trouble} */
export const troubleOf = ({ message, hint, stderr }) => ({ text: message, hint, output: stderr });

export class Link {
  /**
   * @param {object} is
   * @param {() => string} is.key the key of this browser
   * @param {(link: Link) => Promise<void>} is.greet sends the first messages of each connection
   * @param {(message: Json) => void} is.took takes messages that are no answers
   * @param {() => void} is.told reports a change of the connection
   */
  constructor({ key, greet, took, told }) {
    this.key = key;
    this.greet = greet;
    this.took = took;
    this.told = told;
    /** @type {Phase} */
    this.phase = 'closed';
    /** The reason of the loss. */
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

  /** Checks the connection, or tries to connect at once. After a sleep a connection may only look alive. */
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

  /** @param {string} why */
  lost(why) {
    this.drop(why);
    this.why = why;
    const pause = PAUSES[Math.min(this.tries++, PAUSES.length - 1)];
    this.timer = setTimeout(() => this.connect(), pause * (0.8 + Math.random() / 2.5));
    this.become('waiting');
  }

  /** Closes the connection, and rejects its open requests. @param {string} why */
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
