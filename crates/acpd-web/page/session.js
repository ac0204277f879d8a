// @ts-check
// The open session: its connection, on which the server sends blocks, and the user's actions.

import { Blocks } from './blocks.js';
import { Link, Refusal, troubleOf } from './net.js';

/** @typedef {import('./lookup.js').Json} Json */
/** @typedef {import('./blocks.js').Id} Id */

/** Lines to read before older ones are requested. */
const ENOUGH = 2000;
/** Bytes of the longest line; a longer one becomes a gap. */
const LONGEST = 1 << 20;

const CAN = {
  session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
  plan: {}, subagents: {}, elicitation: { form: {}, url: {} },
};

/** Kinds of content that an agent takes. @typedef {{image: boolean, audio: boolean, embedded: boolean}} Takes */
/** @type {Takes} */
export const EVERYTHING = { image: true, audio: true, embedded: true };

/** Reads an agent's answer to `initialize`. @param {Json | undefined} told @returns {Takes} */
export function takenBy(told) {
  const can = told?.agentCapabilities?.promptCapabilities;
  return { image: can?.image === true, audio: can?.audio === true, embedded: can?.embeddedContext === true };
}

/** Why an agent does not take a part of a prompt. @param {Json} block @param {Takes} takes @returns {string | undefined} */
export function refusedWhy({ type, resource }, takes) {
  if (type === 'image' && !takes.image) return 'this agent takes no images';
  if (type === 'audio' && !takes.audio) return 'this agent takes no audio';
  if (type === 'resource' && resource.blob !== undefined && !takes.embedded) return 'this agent takes no files but text and images';
  return undefined;
}

/** @param {Json[]} blocks */
export const textIn = (blocks) => blocks.filter((it) => it.type === 'text').map((it) => it.text).join('\n');

/** The params of `initialize`. @param {string} agent @param {string} place */
export const hello = (agent, place) => ({
  protocolVersion: 1,
  clientCapabilities: CAN,
  clientInfo: { name: 'acpd-web', title: 'the page', version: '1' },
  _meta: {
    _acpd: { agent, notices: true, seq: true, originals: true, maxLine: LONGEST, ...(place && { place }) },
  },
});

export class Session {
  /**
   * @param {object} is
   * @param {string} is.agent
   * @param {string} is.id
   * @param {Json} [is.row] its row of the fleet
   * @param {() => string} is.key
   * @param {string} is.place place of the user
   * @param {() => void} is.told reports a change
   */
  constructor({ agent, id, row, key, place, told }) {
    this.agent = agent;
    this.id = id;
    this.cwd = row?.cwd ?? '';
    this.key = key;
    this.place = place;
    this.told = told;
    /** The generation of the journal. @type {string | undefined} */
    this.journal = undefined;
    this.state = new Blocks();
    /** @type {'loading' | 'live' | 'over'} */
    this.phase = 'loading';
    this.why = '';
    /** The user may act; an observer wakes no agent. */
    this.isController = false;
    this.takes = takenBy(undefined);
    this.canSteer = false;
    this.isReadingOlder = false;
    /** Prompts that acpd may lack: they are neither in the journal nor in the queue yet.
     * @type {{text: string, blocks: Json[], seq: number, socket: WebSocket | undefined}[]} */
    this.sent = [];
    /** @type {Json[]} */
    this.queue = [];
    /** The last error. @type {import('./net.js').Trouble | undefined} */
    this.error = undefined;
    /** A text that returns to the field. @type {string | undefined} */
    this.returned = undefined;
    /** First time when a block was seen running. @type {Map<Id, number>} */
    this.began = new Map();
    this.isFilling = false;
    /** Changes each time bodies have come. */
    this.fills = 0;
    /** Another number after each change of what is shown. */
    this.rev = 0;
    this.link = new Link({
      key, greet: (link) => this.greet(link), took: (message) => this.took(message), told: () => this.changed(),
    });
  }

  get ref() {
    return { session: this.id, agent: this.agent };
  }

  /** Opens a child session whose latest lines are shown. @param {Json} row @param {() => void} told */
  follow(row, told) {
    return new Session({ agent: row.agent, id: row.sessionId, row, key: this.key, place: this.place, told });
  }

  open() {
    this.link.start();
  }

  close() {
    this.link.stop();
  }

  /** Waits until the journal was read, for a limited time. */
  async isRead() {
    for (let tries = 0; tries < 200 && this.phase === 'loading'; tries++) {
      await new Promise((resolve) => { setTimeout(resolve, 25); });
    }
  }

  changed() {
    this.rev++;
    this.told();
  }

  /** @param {Link} link */
  async greet(link) {
    const told = await link.request('initialize', hello(this.agent, this.place));
    this.takes = takenBy(told);
    this.canSteer = told._meta?.steering?.supported === true;
    // After a restored backup, for example, numbers mean other lines.
    const { generation } = told.agentCapabilities?._meta?._acpd ?? {};
    if (this.journal !== undefined && this.journal !== generation) this.forget();
    this.journal = generation;
    const { first, at } = this.state;
    const known = first !== undefined && at >= first ? { first, after: at } : {};
    try {
      const { cwd } = await link.request('_page/open', { agent: this.agent, session: this.id, controls: this.isController, ...known });
      this.cwd = cwd;
    } catch (error) {
      if (!(error instanceof Refusal) || error.lost || error.reason !== 'session_not_found') throw error;
      this.over('acpd does not have this session any more');
    }
  }

  /** Drops everything that was read of another journal. */
  forget() {
    this.state = new Blocks();
    this.phase = 'loading';
    this.began.clear();
    // Prompts in the other journal are not those that were just sent.
    for (const sent of this.sent) sent.seq = Infinity;
  }

  /** @param {string} why */
  over(why) {
    this.phase = 'over';
    this.why = why;
    this.changed();
  }

  /** @param {Json} message */
  took({ method, params = {} }) {
    if (method.startsWith('_page/')) {
      const block = this.state.take(method, params);
      // The start of a block that was running before is unknown.
      if (block?.progress === 'running' && this.phase === 'live' && !this.began.has(block.id)) this.began.set(block.id, Date.now());
    }
    if (method === '_page/live') {
      if (this.phase === 'loading') this.phase = 'live';
      this.settleSent();
      if (this.state.hasOlder && this.state.at - (this.state.first ?? 0) < ENOUGH) this.older();
    }
    if (method === '_acpd/session_removed' && params.sessionId === this.id) this.over('this session was deleted');
    if (method === '_acpd/prompt_queued') this.readQueue();
    if (method === '_page/block' && params.kind === 'prompt' && this.sent.length > 0) this.forgetSaid();
    this.changed();
  }

  /** Reads the bodies of shown blocks. @param {import('./blocks.js').Block[]} blocks */
  async fill(blocks) {
    if (blocks.length === 0 || this.isFilling || !this.link.isLive) return;
    this.isFilling = true;
    try {
      await this.link.request('_page/bodies', { ids: blocks.map(({ id }) => id) });
      this.fills++;
    } catch {
      // Showing the blocks again repeats the request.
    } finally {
      this.isFilling = false;
      this.changed();
    }
  }

  async older() {
    if (this.isReadingOlder || !this.state.hasOlder || !this.link.isLive && this.phase === 'loading') return;
    this.isReadingOlder = true;
    try {
      const { state } = this;
      state.know(await this.link.request('_page/older'));
    } catch {
      // Scrolling there again repeats the request.
    } finally {
      this.isReadingOlder = false;
      this.changed();
    }
  }

  /** Reads older pages up to a line. @param {number} seq */
  async reach(seq) {
    for (let tries = 0; tries < 1000 && (this.state.first ?? Infinity) > seq && this.state.hasOlder; tries++) {
      const { first } = this.state;
      await (this.isReadingOlder ? new Promise((resolve) => { setTimeout(resolve, 50); }) : this.older());
      if (!this.link.isLive || (!this.isReadingOlder && this.state.first === first)) break;
    }
  }

  /** Becomes a controller: wakes the agent, which sends modes and options. */
  async promote() {
    if (this.isController) return;
    this.isController = true;
    try {
      await this.link.request('session/resume', { sessionId: this.id, cwd: this.cwd, mcpServers: [] });
    } catch (error) {
      this.isController = false;
      throw error;
    }
  }

  /** Runs an action of the user, and keeps its error. @template T @param {() => Promise<T>} act
   * @returns {Promise<T | undefined>} */
  async try(act) {
    this.error = undefined;
    try {
      return await act();
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal(String(error));
      this.error = troubleOf(refusal);
      return undefined;
    } finally {
      this.changed();
    }
  }

  /** Sends a prompt, which is queued if a turn runs. @param {string} text @param {Json[]} blocks */
  async prompt(text, blocks) {
    /** @type {typeof this.sent[0]} */
    const sent = { text, blocks, seq: this.state.at, socket: this.link.socket };
    this.sent.push(sent);
    this.error = undefined;
    this.changed();
    try {
      await this.promote();
      await this.link.request('session/prompt', { sessionId: this.id, prompt: blocks });
    } catch (error) {
      // Without an answer, the next connection shows whether acpd has the prompt.
      if (error instanceof Refusal && error.lost && this.link.phase !== 'closed') return;
      // A turn that has begun shows its end itself.
      const isAround = !this.sent.includes(sent);
      if (error instanceof Refusal && !isAround) {
        this.error = troubleOf(error);
        this.returned = text;
      }
    }
    this.sent = this.sent.filter((it) => it !== sent);
    this.changed();
  }

  /** Forgets prompts that are in the journal. */
  forgetSaid() {
    const said = this.state.turns.flatMap((turn) => turn.blocks.filter(({ kind }) => kind === 'prompt'));
    this.sent = this.sent.filter((sent) => !said.some((block) => block.seq > sent.seq && block.content?.includes(sent.text)));
  }

  /** Forgets prompts that are in the journal or in the queue. */
  async settleSent() {
    this.forgetSaid();
    if (!await this.readQueue()) return;
    // Prompts left from another connection never arrived.
    const { socket } = this.link;
    const lost = socket ? this.sent.filter((sent) => sent.socket !== socket) : [];
    if (lost.length === 0) return;
    this.sent = this.sent.filter((sent) => !lost.includes(sent));
    this.error = { text: 'the connection was lost before the prompt arrived', hint: 'it is in the field again' };
    this.returned = lost.map((sent) => sent.text).join('\n\n');
    this.changed();
  }

  async readQueue() {
    try {
      const { prompts } = await this.link.request('_acpd/session/queue', this.ref);
      this.queued(prompts);
      return true;
    } catch {
      // The next change reads it again.
      return false;
    }
  }

  /** @param {Json[]} prompts */
  queued(prompts) {
    this.queue = prompts;
    const waits = prompts.map((prompt) => JSON.stringify(prompt.prompt));
    this.sent = this.sent.filter((sent) => !waits.includes(JSON.stringify(sent.blocks)));
    this.changed();
  }

  /** @param {'edit' | 'move' | 'remove'} what @param {Json} params */
  changeQueue(what, params) {
    return this.try(async () => {
      const { prompts } = await this.link.request(`_acpd/session/queue/${what}`, { ref: this.ref, by: 'the page', ...params });
      this.queued(prompts);
      return true;
    });
  }

  /** Sends a message into the running turn. @param {string} text @param {Json[]} blocks */
  async steer(text, blocks) {
    await this.try(async () => {
      try {
        await this.promote();
        const params = { sessionId: this.id, prompt: blocks, _meta: { steering: { idleBehavior: 'promptRequired' } } };
        const { outcome } = await this.link.request('_session/steering', params);
        if (outcome === 'promptRequired') await this.prompt(text, blocks);
        else if (outcome !== 'injected' && outcome !== 'startedNewTurn') throw new Refusal('the agent did not take it');
      } catch (error) {
        this.returned = text;
        throw error;
      }
    });
  }

  /** Ends the running turn, and takes back the queued prompts unless `turnOnly` is set: their text returns to the field.
   * @param {boolean} [turnOnly] */
  stop(turnOnly = false) {
    const queued = turnOnly ? [] : this.queue.map(({ prompt }) => textIn(prompt)).filter(Boolean);
    return this.try(async () => {
      const by = { name: 'acpd-web', title: 'the page', place: this.place };
      await this.link.request('_acpd/session/cancel', { ...this.ref, turnOnly, by });
      if (queued.length > 0) this.returned = queued.join('\n\n');
    });
  }

  /** @param {string} mode */
  setMode(mode) {
    return this.try(async () => {
      await this.promote();
      await this.link.request('session/set_mode', { sessionId: this.id, modeId: mode });
      this.state.header.mode = mode;
    });
  }

  /** @param {string} option @param {unknown} value */
  setOption(option, value) {
    return this.try(async () => {
      await this.promote();
      const type = typeof value === 'boolean' ? { type: 'boolean' } : {};
      const params = { sessionId: this.id, configId: option, ...type, value };
      await this.link.request('session/set_config_option', params);
    });
  }
}
