// @ts-check
// How a session begins on the page.

import { Link, Refusal } from './net.js';
import { hello } from './session.js';
import { navigate } from './store.js';

/** Begins a session and sends its first prompt. @param {import('./store.js').Store} store
 * @param {{agent: string, cwd: string, name?: string, blocks: import('./fold/block.js').Json[], text: string}} is
 * @returns {Promise<void>} */
export async function begin(store, { agent, cwd, name, blocks, text }) {
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
    const hasImages = blocks.some((block) => block.type === 'image');
    if (hasImages && agentIs.agentCapabilities?.promptCapabilities?.image !== true) throw new Refusal('this agent takes no images');
    const _meta = name ? { _meta: { _acpd: { name } } } : {};
    const { sessionId, ...told } = await link.request('session/new', { cwd, mcpServers: [], ..._meta });
    const session = await store.sessionOf(agent, sessionId, { cwd, seq: 0 });
    session.knows(told);
    store.sessions.unshift(session);
    navigate({ view: 'session', agent, id: sessionId });
    if (blocks.length > 0) {
      await session.isRead();
      // Its answer is the end of the turn, and tells itself.
      session.prompt(text, blocks);
    }
  } finally {
    link.stop();
  }
}
