// @ts-check
// Beginning a session from the page.

import { Link, Refusal } from './net.js';
import { hello, refusedWhy, takenBy } from './session.js';
import { navigate } from './store.js';

/** @typedef {import('./store.js').Store} Store */

/** @param {Store} store @param {string} method @param {object} body */
async function worktree(store, method, body) {
  const answer = await fetch('/worktree', {
    method, body: JSON.stringify(body), headers: { authorization: `Bearer ${store.key}`, 'content-type': 'application/json' },
  }).catch(() => undefined);
  const told = await answer?.json().catch(() => undefined);
  if (!answer?.ok) throw new Refusal(told?.error ?? 'acpd is not reached', { hint: told?.hint });
  return told;
}

/** Begins a session, in a worktree of its own if wanted, and sends its first prompt. A failure removes the worktree.
 * @param {Store} store
 * @param {{agent: string, cwd: string, name?: string, worktree: boolean, blocks: import('./lookup.js').Json[], text: string}} is
 * @returns {Promise<void>} */
export async function begin(store, is) {
  if (!is.worktree) return beginIn(store, is);
  const made = await worktree(store, 'POST', { cwd: is.cwd, name: is.name || undefined });
  try {
    await beginIn(store, { ...is, cwd: made.cwd });
  } catch (error) {
    await worktree(store, 'DELETE', { path: made.path }).catch(() => {});
    throw error;
  }
}

/** @param {Store} store
 * @param {{agent: string, cwd: string, name?: string, blocks: import('./lookup.js').Json[], text: string}} is
 * @returns {Promise<void>} */
async function beginIn(store, { agent, cwd, name, blocks, text }) {
  /** @type {(value: unknown) => void} */
  let greeted = () => {};
  /** @type {(error: Error) => void} */
  let failed = () => {};
  const ready = new Promise((resolve, reject) => {
    greeted = resolve;
    failed = reject;
  });
  const link = new Link({
    key: () => store.key ?? '', took: () => {}, told: () => {},
    greet: (link) => link.request('initialize', hello(agent, store.me.place ?? '')).then(greeted, failed),
  });
  link.start();
  try {
    /** @type {any} */
    const agentIs = await ready;
    const why = blocks.map((block) => refusedWhy(block, takenBy(agentIs))).find(Boolean);
    if (why) throw new Refusal(why);
    const _meta = name ? { _meta: { _acpd: { name } } } : {};
    const { sessionId } = await link.request('session/new', { cwd, mcpServers: [], ..._meta });
    const session = await store.sessionOf(agent, sessionId, { cwd, seq: 0 });
    store.sessions.unshift(session);
    navigate({ view: 'session', agent, id: sessionId });
    if (blocks.length > 0) {
      await session.isRead();
      // Not awaited: its answer is the end of the turn.
      session.prompt(text, blocks);
    }
  } finally {
    link.stop();
  }
}
