// @ts-check
// A session over connections that are lost at any moment: what is shown is the journal, with nothing lost or twice, and
// no prompt is sent twice or forgotten. The other end is a server of a few lines, whose blocks are lines of its journal.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isMissing, plain } from '../../page/blocks.js';
import { Refusal } from '../../page/net.js';
import { Session } from '../../page/session.js';
import { random } from './random.js';

/** @typedef {import('../../page/lookup.js').Json} Json */

/** The server: one session with its journal, and who follows it. */
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

  /** Writes a block and sends it. @param {number} turn @param {string} kind @param {string} [text] */
  write(turn, kind, text) {
    const seq = this.journal.length + 1;
    const block = { id: seq, seq, last: seq, turn, kind, progress: 'done', folding: 'open', line: [['plain', text ?? kind]], has: 'whole', ...(text && { content: [text] }) };
    this.journal.push(block);
    for (const socket of this.followers) socket.take({ method: '_page/block', params: block });
  }

  /** @param {string} text */
  turn(text) {
    this.prompts.push(text);
    const first = this.journal.length + 1;
    this.write(first, 'prompt', text);
    this.write(first, 'answer', `re ${text}`);
    this.write(first, 'turn');
  }

  /** @param {number} first */
  range = (first) => ({ first, hasOlder: first > 1 });

  /** @param {Socket} socket @param {Json} request */
  answer(socket, { id, method, params }) {
    const answer = (/** @type {unknown} */ result) => socket.take({ id, result });
    const send = (/** @type {Json[]} */ blocks) => blocks.forEach((block) => socket.take({ method: '_page/block', params: block }));
    switch (method) {
      case 'initialize': return answer({ agentCapabilities: { _meta: { _acpd: { generation: this.generation } } }, _meta: { steering: { supported: true } } });
      case '_page/open': {
        const { first = Math.max(1, this.journal.length - 20), after = first - 1 } = params;
        socket.first = first;
        answer({ cwd: '/w' });
        send(this.journal.slice(after).map((block) => ({ ...block, ...(block.seq % 7 === 0 && { has: 'line', content: undefined }) })));
        this.followers.add(socket);
        return socket.take({ method: '_page/live', params: { seq: this.journal.length, ...this.range(first) } });
      }
      case '_page/older': {
        const first = Math.max(1, socket.first - 10);
        send(this.journal.slice(first - 1, socket.first - 1));
        socket.first = first;
        return answer(this.range(first));
      }
      case '_page/bodies':
        send(this.journal.filter(({ id }) => params.ids.includes(id)));
        return answer({});
      case 'session/prompt': {
        if (this.loses) return undefined;
        this.turn(params.prompt[0].text);
        return answer({ stopReason: 'end_turn' });
      }
      case '_acpd/session/queue': return answer({ sessionId: 's', prompts: this.queue });
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
    this.first = 1;
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

/** Whether all was read; what is older is asked for. @param {Session} session */
function hasAll(session) {
  session.older();
  return !session.state.hasOlder && !session.isReadingOlder;
}

/** What a page shows of all blocks. @param {Session} session */
const told = ({ state }) => state.turns.flatMap((turn) => turn.blocks.map(({ seq, kind, line }) => [seq, kind, plain(line)]));

/** What the journal says. */
const truth = () => daemon.journal.map(({ seq, kind, line }) => [seq, kind, plain(line)]);

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
    await until('the session to be read', () => hasAll(session) && session.link.isLive && session.state.at === daemon.journal.length
      && session.sent.length === 0);
    assert.deepEqual(told(session), truth(), `seed ${seed}`);
    assert.equal(new Set(daemon.prompts).size, daemon.prompts.length, 'no prompt is sent twice');
    session.close();
  }
});

test('a body is read when it is shown, also over a lost connection', async () => {
  daemon = new Daemon();
  for (let at = 0; at < 30; at++) daemon.turn(`turn ${at}`);
  const session = open({ cwd: '/w', seq: daemon.journal.length });
  await until('the session', () => session.phase === 'live' && hasAll(session));
  const missing = () => [...session.state.all.values()].filter((block) => isMissing(block, 'open'));
  assert.ok(missing().length > 1);
  session.fill(missing());
  for (const socket of [...daemon.sockets]) socket.lose();
  await until('another connection', () => session.link.isLive && !session.isFilling);
  await until('the bodies', () => {
    session.fill(missing());
    return missing().length === 0;
  });
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
    await until('the new journal', () => hasAll(session) && session.phase === 'live' && session.state.at === daemon.journal.length);
    assert.deepEqual(told(session), truth());
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
