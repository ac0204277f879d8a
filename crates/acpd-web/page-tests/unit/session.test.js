// @ts-check
// A session over connections that are lost at any moment: what is shown is the journal, with nothing lost or twice, and
// no prompt is sent twice or forgotten. The other end is a daemon of a few lines.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { textOf } from '../../page/fold/block.js';
import { State } from '../../page/fold/fold.js';
import { shed } from '../../page/fold/shed.js';
import { Refusal } from '../../page/net.js';
import { Session } from '../../page/session.js';
import { random } from './random.js';

/** @typedef {import('../../page/fold/block.js').Json} Json */

/** The daemon: one session with its journal, and who follows it. */
class Daemon {
  constructor() {
    /** @type {Json[]} */ this.journal = [];
    /** @type {Set<Socket>} */ this.followers = new Set();
    /** @type {Set<Socket>} */ this.sockets = new Set();
    /** @type {string[]} */ this.prompts = [];
    /** @type {Json[]} */ this.queue = [];
    this.isThere = true;
    this.generation = 'g1';
    /** Prompts are taken and not answered. */
    this.loses = false;
  }

  /** Writes a line and sends it to all but one. @param {string} method @param {Json} params @param {Socket} [but] */
  write(method, params, but) {
    const seq = this.journal.length + 1;
    const line = { jsonrpc: '2.0', method, params: { sessionId: 's', ...params } };
    this.journal.push({ seq, line });
    for (const socket of this.followers) if (socket !== but) socket.take({ ...line, params: { ...line.params, _meta: { _acpd: { seq } } } });
  }

  /** @param {string} text @param {Socket} [by] */
  turn(text, by) {
    this.prompts.push(text);
    this.write('_acpd/turn_started', { turn: this.prompts.length, at: 1 });
    this.write('session/update', { update: { sessionUpdate: 'user_message_chunk', content: { type: 'text', text } } }, by);
    this.write('session/update', { update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `re ${text}` } } });
    this.write('_acpd/turn_ended', { turn: this.prompts.length, at: 2, outcome: { kind: 'stopped', stopReason: 'end_turn' } });
  }

  /** @param {Socket} socket @param {Json} request */
  answer(socket, { id, method, params }) {
    const answer = (/** @type {unknown} */ result) => socket.take({ id, result });
    const session = { sessionId: 's', seq: this.journal.length, cwd: '/w' };
    switch (method) {
      case 'initialize': return answer({ agentCapabilities: { _meta: { _acpd: { generation: this.generation } } }, _meta: { steering: { supported: true } } });
      case '_acpd/session/attach': {
        answer({ session });
        for (const { seq, line } of this.journal.slice(params.after)) {
          socket.take({ ...line, params: { ...line.params, _meta: { _acpd: { seq } } } });
        }
        this.followers.add(socket);
        return socket.take({ method: '_acpd/caught_up', params: { sessionId: 's', seq: this.journal.length } });
      }
      case '_acpd/session/log': {
        const all = this.journal.slice(params.after);
        const entries = all.slice(0, Math.min(params.limit, 3));
        return answer({ entries, ...(entries.length < all.length && { next: entries.at(-1)?.seq }) });
      }
      case 'session/prompt': {
        if (this.loses) return undefined;
        this.turn(params.prompt[0].text, socket);
        return answer({ stopReason: 'end_turn' });
      }
      case '_acpd/session/queue': return answer({ sessionId: 's', prompts: this.queue });
      case '_acpd/session/show': return answer(session);
      default: return answer({});
    }
  }
}

let daemon = new Daemon();

/** A WebSocket to it. */
class Socket {
  constructor() {
    this.readyState = 0;
    /** @type {any} */ this.onopen = null;
    /** @type {any} */ this.onmessage = null;
    /** @type {any} */ this.onclose = null;
    this.daemon = daemon;
    daemon.sockets.add(this);
    setImmediate(() => {
      if (this.readyState !== 0) return;
      if (!this.daemon.isThere) {
        this.lose();
        return;
      }
      this.readyState = 1;
      this.onopen?.();
    });
  }

  /** @param {string} text */
  send(text) {
    const message = JSON.parse(text);
    setImmediate(() => {
      if (this.readyState === 1 && message.method && message.id !== undefined) this.daemon.answer(this, message);
    });
  }

  /** @param {Json} message */
  take(message) {
    setImmediate(() => this.readyState === 1 && this.onmessage?.({ data: JSON.stringify(message) }));
  }

  close() {
    this.readyState = 3;
    this.daemon.followers.delete(this);
    this.daemon.sockets.delete(this);
  }

  /** @param {number} [code] */
  lose(code = 1006) {
    const told = this.onclose;
    this.close();
    told?.({ code, reason: '' });
  }
}

const later = globalThis.setTimeout;
// Nobody waits for pauses here.
Object.assign(globalThis, {
  WebSocket: Socket, location: { protocol: 'http:', host: 'test' },
  setTimeout: (/** @type {() => void} */ act, /** @type {number} */ ms) => later(act, ms / 200),
});

/** @param {string} what @param {() => unknown} is */
async function until(what, is) {
  // By the clock: a quick machine has many turns within one pause.
  for (const end = Date.now() + 5000; Date.now() < end;) {
    if (is()) return;
    await new Promise((resolve) => { setImmediate(resolve); });
  }
  assert.fail(`waited in vain for ${what}`);
}

/** @param {Json} [row] */
const open = (row) => {
  const session = new Session({ agent: 'demo', id: 's', row, key: () => 'k', place: '', told: () => {} });
  session.open();
  return session;
};

/** The texts of all messages. @param {State} state */
const told = (state) => state.turns.map((turn) => turn.blocks.filter((block) => block.content).map((block) => `${block.kind} ${textOf(block)}`));

/** What the journal says. */
function truth() {
  const state = new State('s');
  for (const entry of daemon.journal) state.foldEntry(/** @type {any} */ (entry));
  return told(state);
}

test('what is shown is the journal, also the own prompts, however often the connection is lost', async () => {
  for (let seed = 1; seed <= 60; seed++) {
    daemon = new Daemon();
    const next = random(seed);
    for (let at = next(20); at > 0; at--) daemon.turn(`before ${at}`);
    const session = open({ cwd: '/w', seq: daemon.journal.length });
    for (let step = 0; step < 40; step++) {
      switch (next(5)) {
        case 0: daemon.turn(`other ${step}`); break;
        case 1: if (session.link.isLive) session.prompt(`own ${step}`, [{ type: 'text', text: `own ${step}` }]); break;
        case 2: if (next(2)) for (const socket of [...daemon.sockets]) socket.lose(); break;
        default: for (let wait = next(6); wait > 0; wait--) await new Promise((resolve) => { setImmediate(resolve); });
      }
    }
    await until('the session to be read', () => session.link.isLive && !session.behind && session.cursor === daemon.journal.length
      && !session.hasOlder && session.sent.length === 0);
    assert.deepEqual(told(session.state), truth(), `seed ${seed}`);
    assert.equal(new Set(daemon.prompts).size, daemon.prompts.length, 'no prompt is sent twice');
    session.close();
  }
});

test('a body that was dropped is read again, also over a lost connection, and one that is gone is not asked for for ever', async () => {
  daemon = new Daemon();
  for (let at = 0; at < 300; at++) daemon.turn(`turn ${at}`);
  const session = open({ cwd: '/w', seq: daemon.journal.length });
  await until('the session', () => session.phase === 'live' && !session.hasOlder && !session.isReadingOlder);
  const wanted = told(session.state);
  shed(session.state, Infinity, 1);
  const gone = () => session.state.turns.flatMap((turn) => turn.blocks).filter((block) => block.shed);
  const some = gone();
  assert.ok(some.length > 0);
  session.refill(some);
  for (const socket of [...daemon.sockets]) socket.lose();
  await until('another connection', () => session.link.isLive && !session.isRefilling);
  assert.ok(some[0].shed, 'nothing was read');
  // The journal has other lines there now.
  daemon.journal[some[1].seq - 1].line = { method: 'other', params: { sessionId: 's' } };
  await until('the bodies', () => {
    session.refill(gone());
    return gone().length === 1;
  });
  assert.deepEqual([...session.lost], [some[1].id]);
  session.refill(gone());
  assert.equal(session.isRefilling, false);
  wanted[Math.floor(some[1].seq / 4)].splice(1, 1, 'answer ');
  assert.deepEqual(told(session.state), wanted);
  session.close();
});

test('a prompt that acpd never had comes back to its person, and is not sent again', async () => {
  daemon = new Daemon();
  const session = open();
  await until('the session', () => session.phase === 'live');
  daemon.loses = true;
  session.prompt('lost', [{ type: 'text', text: 'lost' }]);
  await until('it to be sent', () => session.link.open.size > 0 && session.isController);
  for (let wait = 0; wait < 20; wait++) await new Promise((resolve) => { setImmediate(resolve); });
  for (const socket of [...daemon.sockets]) socket.lose();
  await until('it to come back', () => session.returned === 'lost');
  assert.deepEqual(daemon.prompts, []);
  assert.ok(session.error);
  session.close();
});

test('a prompt that waits in the queue has arrived', async () => {
  daemon = new Daemon();
  const session = open();
  await until('the session', () => session.phase === 'live');
  daemon.loses = true;
  const prompt = [{ type: 'text', text: 'waits' }];
  session.prompt('waits', prompt);
  await until('it to be sent', () => session.isController);
  daemon.queue = [{ ticket: 1, at: 1, prompt }];
  for (const socket of [...daemon.sockets]) socket.lose();
  await until('the queue to be read', () => session.queue.length === 1 && session.link.isLive);
  assert.equal(session.returned, undefined);
  assert.deepEqual(session.sent, []);
  session.close();
});

test('of another journal nothing that was known counts, also when its numbers have gone on', async () => {
  for (const more of [1, 9]) {
    daemon = new Daemon();
    for (let at = 0; at < 5; at++) daemon.turn(`old ${at}`);
    const session = open({ cwd: '/w', seq: daemon.journal.length });
    await until('the session', () => session.phase === 'live');
    daemon.loses = true;
    session.prompt('new 0', [{ type: 'text', text: 'new 0' }]);
    await until('it to be sent', () => session.isController && session.link.open.size > 0);
    Object.assign(daemon, { journal: [], prompts: [], generation: `g${more + 1}`, loses: false });
    for (let at = 0; at < more; at++) daemon.turn(`new ${at}`);
    for (const socket of [...daemon.sockets]) socket.lose();
    await until('the new journal', () => session.phase === 'live' && session.cursor === daemon.journal.length && !session.hasOlder);
    assert.deepEqual(told(session.state), truth());
    await until('what was sent to come back', () => session.returned === 'new 0');
    assert.equal(daemon.prompts.length, more, 'it is not sent again');
    session.close();
  }
});

test('a connection that is signed out is not tried again', async () => {
  daemon = new Daemon();
  const session = open();
  await until('the session', () => session.phase === 'live');
  for (const socket of [...daemon.sockets]) socket.lose(4401);
  assert.equal(session.link.phase, 'signed-out');
  await new Promise((resolve) => { later(resolve, 100); });
  assert.equal(daemon.sockets.size, 0);
  await assert.rejects(session.link.request('_acpd/ping'), (error) => error instanceof Refusal && error.lost);
});

test('a connection that only looks alive is found out', async () => {
  daemon = new Daemon();
  const session = open();
  await until('the session', () => session.phase === 'live');
  const [dead] = [...daemon.sockets];
  dead.send = () => {};
  session.link.check();
  await until('another connection', () => session.link.isLive && session.link.socket !== /** @type {any} */ (dead));
  session.close();
});
