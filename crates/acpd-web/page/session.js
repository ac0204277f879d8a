// @ts-check
// The open session: its connection, what was read of its journal, and what a person does in it.
//
// The journal is read up to a cursor. acpd does not send a client its own prompts and choices, so where numbers are
// missing, the page reads the lines between from the journal before it goes on: what it shows is the journal itself.

import { State } from './fold/fold.js';
import { optionsOf } from './fold/header.js';
import { fill, shed } from './fold/shed.js';
import { Link, Refusal, troubleOf } from './net.js';

/** @typedef {import('./fold/block.js').Json} Json */
/** @typedef {import('./fold/block.js').Id} Id */

/** Lines that are read before the first picture, before older ones are asked for, and of an older page. */
const FIRST = 300;
const ENOUGH = 2000;
const PAGE = 1000;
/** After so many characters it is looked whether too much is kept. */
const LOOK = 256 << 10;
/** The longest line in bytes; of a longer one there is a gap. */
const LONGEST = 1 << 20;

const CAN = {
  session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
  plan: {}, subagents: {}, elicitation: { form: {}, url: {} },
};

/** What an agent takes. @typedef {{image: boolean, audio: boolean, embedded: boolean}} Takes */
/** @type {Takes} */
export const EVERYTHING = { image: true, audio: true, embedded: true };

/** What an agent takes, as its answer to `initialize` says. @param {Json | undefined} told @returns {Takes} */
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

/** The text of a prompt. @param {Json[]} blocks */
export const textIn = (blocks) => blocks.filter((it) => it.type === 'text').map((it) => it.text).join('\n');

/** What `initialize` says. @param {string} agent @param {string} place */
export const hello = (agent, place) => ({
  protocolVersion: 1,
  clientCapabilities: CAN,
  clientInfo: { name: 'acpd-web', title: 'the page', version: '1' },
  _meta: { _acpd: { agent, notices: true, seq: true, maxLine: LONGEST, ...(place && { place }) } },
});

export class Session {
  /**
   * @param {object} is
   * @param {string} is.agent
   * @param {string} is.id
   * @param {Json} [is.row] what is known of it
   * @param {() => string} is.key
   * @param {string} is.place where its person is
   * @param {() => void} is.told something has changed
   */
  constructor({ agent, id, row, key, place, told }) {
    this.agent = agent;
    this.id = id;
    this.cwd = row?.cwd ?? '';
    this.place = place;
    this.told = told;
    /** Which journal it is. @type {string | undefined} */
    this.journal = undefined;
    this.state = new State(id, this.cwd);
    /** Lines up to this one are not asked for, as long as nothing was read. */
    this.from = row ? Math.max(0, row.seq - FIRST) : -1;
    /** @type {'loading' | 'live' | 'over'} */
    this.phase = 'loading';
    this.why = '';
    /** Whether its person may act in it; an observer wakes no agent. */
    this.isController = false;
    this.takes = takenBy(undefined);
    this.canSteer = false;
    this.isReadingOlder = false;
    /** The journal was read from its beginning. */
    this.hasAll = false;
    /** @type {Json[] | undefined} */
    this.behind = undefined;
    /** Prompts that acpd may not have: they are neither in the journal nor in the queue yet.
     * @type {{text: string, blocks: Json[], seq: number, socket: WebSocket | undefined}[]} */
    this.sent = [];
    /** @type {Json[]} */
    this.queue = [];
    /** The newest that a person is told: an error and its way out. @type {import('./net.js').Trouble | undefined} */
    this.error = undefined;
    /** A text that comes back to the person. @type {string | undefined} */
    this.returned = undefined;
    /** When a block was seen to run first. @type {Map<Id, number>} */
    this.began = new Map();
    /** The line that its person looks at: bodies far from it are dropped. */
    this.seen = Infinity;
    this.lookedAt = 0;
    /** Bodies that the journal does not give back. @type {Set<Id>} */
    this.lost = new Set();
    this.isRefilling = false;
    /** Another number each time that bodies have come again. */
    this.refills = 0;
    /** Another number after each change of what is shown. */
    this.rev = 0;
    this.link = new Link({
      key, greet: (link) => this.greet(link), took: (message) => this.took(message), told: () => this.linkChanged(),
    });
  }

  get ref() {
    return { session: this.id, agent: this.agent };
  }

  /** The last line that was read. */
  get cursor() {
    return Math.max(this.state.at, this.from);
  }

  /** Whether there are older lines. */
  get hasOlder() {
    return !this.hasAll && (this.state.first ?? this.from + 1) > 1;
  }

  open() {
    this.link.start();
  }

  close() {
    this.link.stop();
  }

  /** Waits until its journal was read, or a while. */
  async isRead() {
    for (let tries = 0; tries < 200 && this.phase === 'loading'; tries++) {
      await new Promise((resolve) => { setTimeout(resolve, 25); });
    }
  }

  changed() {
    this.rev++;
    this.told();
  }

  linkChanged() {
    if (this.link.phase === 'waiting') {
      // What is still open is asked again.
      this.state.closeAllQuestions();
      this.behind = undefined;
    }
    this.changed();
  }

  /** @param {Link} link */
  async greet(link) {
    const told = await link.request('initialize', hello(this.agent, this.place));
    this.takes = takenBy(told);
    this.canSteer = told._meta?.steering?.supported === true;
    const role = this.isController ? 'controller' : 'observer';
    // A backup has taken the place of the journal, say, and its numbers mean other lines.
    const { generation, showPlan } = told.agentCapabilities?._meta?._acpd ?? {};
    if (this.journal !== undefined && this.journal !== generation) this.forget();
    this.journal = generation;
    this.state.hidesPlans = showPlan === false;
    try {
      if (this.from < 0) {
        const row = await link.request('_acpd/session/show', this.ref);
        this.from = Math.max(0, row.seq - FIRST);
        this.cwd = row.cwd;
        this.state.folder = row.cwd;
      }
      await link.request('_acpd/session/attach', { ref: this.ref, after: this.cursor, role });
    } catch (error) {
      if (!(error instanceof Refusal) || error.lost || error.reason !== 'session_not_found') throw error;
      this.over('acpd does not have this session any more');
    }
  }

  /** The journal is another one: nothing that was read of the last one counts. */
  forget() {
    this.state = new State(this.id, this.cwd);
    this.from = -1;
    this.phase = 'loading';
    this.hasAll = false;
    this.lost.clear();
    this.began.clear();
    // Words that it has are not those that were just sent.
    for (const sent of this.sent) sent.seq = Infinity;
  }

  /** @param {string} why */
  over(why) {
    this.phase = 'over';
    this.why = why;
    this.changed();
  }

  /** @param {Json} message */
  took(message) {
    const { method, params = {} } = message;
    if (message.id !== undefined && !['session/request_permission', 'elicitation/create'].includes(method)) {
      this.link.send({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'the page does not do this' } });
      return;
    }
    if (method === '_acpd/caught_up') {
      if (params.sessionId !== this.id) return;
      if (this.phase === 'loading') this.phase = 'live';
      if (params.seq > this.cursor) this.fill();
      this.settleSent();
      if (this.hasOlder && this.state.at - (this.state.first ?? 0) < ENOUGH) this.older();
      this.changed();
      return;
    }
    if (method === '_acpd/session_removed' && params.sessionId === this.id) {
      this.over('this session was deleted');
      return;
    }
    if (method === '_acpd/prompt_queued') this.readQueue();
    if (this.behind) {
      this.behind.push(message);
      return;
    }
    const seq = params._meta?._acpd?.seq;
    if (seq > this.cursor + 1) {
      this.fill(message);
      return;
    }
    this.fold(message);
  }

  /** @param {Json} message */
  fold(message) {
    const changed = this.state.fold(message);
    this.look(changed);
    if (message.method === '_acpd/turn_started' && this.sent.length > 0) this.fill();
  }

  /** @param {Set<Id>} changed */
  look(changed) {
    const now = Date.now();
    for (const id of changed) {
      // When something began that was there before is not known.
      if (this.phase === 'live' && !this.began.has(id) && this.state.get(id)?.progress === 'running') this.began.set(id, now);
    }
    this.tidy();
    this.changed();
  }

  /** Drops bodies that are far from what is looked at, if there are many. */
  tidy() {
    if (this.link.received - this.lookedAt < LOOK) return;
    this.lookedAt = this.link.received;
    shed(this.state, this.seen);
  }

  /** Reads the bodies of blocks again: of the first one, and of those behind it that lie in the same page.
   * @param {import('./fold/block.js').Block[]} blocks */
  async refill(blocks) {
    const missing = blocks.filter((block) => block.shed && !this.lost.has(block.id));
    const { state } = this;
    if (missing.length === 0 || this.isRefilling || !this.link.isLive) return;
    this.isRefilling = true;
    try {
      const [{ seq, last }] = missing;
      const part = missing.filter((block) => block.last <= Math.max(last, seq + PAGE - 1));
      fill(state, await this.read(seq - 1, Math.max(...part.map((block) => block.last))));
      for (const block of part) if (block.shed) this.lost.add(block.id);
      this.isRefilling = false;
      this.refills++;
      this.tidy();
      this.changed();
    } catch {
      // It is asked for again when it is shown again.
      this.isRefilling = false;
    }
  }

  /** Reads lines of the journal. @param {number} after @param {number} to */
  async read(after, to) {
    /** @type {{seq: number, line: unknown}[]} */
    const entries = [];
    while (after < to) {
      const page = await this.link.request('_acpd/session/log', { ref: this.ref, after, limit: Math.min(PAGE, to - after) });
      entries.push(...page.entries);
      if (page.next === undefined || page.entries.length === 0) break;
      after = page.next;
    }
    return entries;
  }

  /** Reads from the journal what is missing; what comes meanwhile waits. @param {Json[]} waiting */
  async fill(...waiting) {
    if (this.behind) return;
    const behind = waiting;
    this.behind = behind;
    try {
      for (let next = true; next;) {
        const page = await this.link.request('_acpd/session/log', { ref: this.ref, after: this.cursor, limit: PAGE });
        if (this.behind !== behind) return;
        for (const entry of page.entries) this.look(this.state.foldEntry(entry));
        next = page.next !== undefined && page.entries.length > 0;
      }
      this.settleSent();
    } catch {
      // The connection is lost, and the lines come again behind the cursor.
    } finally {
      if (this.behind === behind) {
        this.behind = undefined;
        for (const message of behind) this.fold(message);
        this.changed();
      }
    }
  }

  /** Reads an older page. */
  async older() {
    const { first } = this.state;
    if (this.isReadingOlder || first === undefined || first <= 1 || !this.link.isLive && this.phase === 'loading') return;
    this.isReadingOlder = true;
    try {
      const start = Math.max(0, first - 1 - PAGE);
      const entries = await this.read(start, first - 1);
      if (this.state.first !== first) return;
      this.state.earlier(entries);
      this.hasAll = start === 0;
      this.tidy();
    } catch {
      // It is asked for again when its place is looked at again.
    } finally {
      this.isReadingOlder = false;
      this.changed();
    }
  }

  /** Reads older pages until a line is there. @param {number} seq */
  async reach(seq) {
    for (let tries = 0; tries < 1000 && (this.state.first ?? Infinity) > seq && this.hasOlder; tries++) {
      const { first } = this.state;
      await (this.isReadingOlder ? new Promise((resolve) => { setTimeout(resolve, 50); }) : this.older());
      if (!this.link.isLive || (!this.isReadingOlder && this.state.first === first)) break;
    }
  }

  /** Lets the person act: the agent is woken, and modes and options are told. */
  async promote() {
    if (this.isController) return;
    this.isController = true;
    try {
      const told = await this.link.request('session/resume', { sessionId: this.id, cwd: this.cwd, mcpServers: [] });
      this.knows(told);
    } catch (error) {
      this.isController = false;
      throw error;
    }
  }

  /** Takes what the agent says of its modes and options. @param {Json | undefined} told */
  knows(told) {
    const { header } = this.state;
    if (Array.isArray(told?.modes?.availableModes)) {
      header.modes = told.modes.availableModes;
      header.mode ??= told.modes.currentModeId;
    }
    if (told?.configOptions) header.options = optionsOf(told.configOptions);
    this.changed();
  }

  /** Runs what a person has asked for, and tells if it fails. @template T @param {() => Promise<T>} act
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

  /** Sends a prompt; it waits if a turn runs. @param {string} text @param {Json[]} blocks */
  async prompt(text, blocks) {
    /** @type {typeof this.sent[0]} */
    const sent = { text, blocks, seq: this.cursor, socket: this.link.socket };
    this.sent.push(sent);
    this.error = undefined;
    this.changed();
    try {
      await this.promote();
      await this.link.request('session/prompt', { sessionId: this.id, prompt: blocks });
    } catch (error) {
      // Without an answer nobody knows whether acpd has it: that is looked for behind the next connection.
      if (error instanceof Refusal && error.lost && this.link.phase !== 'closed') return;
      // A turn that has begun tells itself how it ended.
      const isAround = !this.sent.includes(sent);
      if (error instanceof Refusal && !isAround) {
        this.error = troubleOf(error);
        this.returned = text;
      }
    }
    this.sent = this.sent.filter((it) => it !== sent);
    this.changed();
  }

  /** Forgets prompts that are in the journal or in the queue. */
  async settleSent() {
    for (const sent of [...this.sent]) {
      const isSaid = this.state.turns.some((turn) => turn.blocks.some((block) =>
        block.kind === 'prompt' && block.seq > sent.seq && block.content?.some((part) => part === sent.text)));
      if (isSaid) this.sent = this.sent.filter((it) => it !== sent);
    }
    if (!await this.readQueue()) return;
    // What is left over from another connection never arrived.
    const { socket } = this.link;
    const lost = socket ? this.sent.filter((sent) => sent.socket !== socket) : [];
    if (lost.length === 0) return;
    this.sent = this.sent.filter((sent) => !lost.includes(sent));
    this.error = { text: 'the connection was lost before the prompt arrived', hint: 'it is in the field again' };
    this.returned = lost.map((sent) => sent.text).join('\n\n');
    this.changed();
  }

  /** Reads what waits. */
  async readQueue() {
    try {
      const { prompts } = await this.link.request('_acpd/session/queue', this.ref);
      this.queued(prompts);
      return true;
    } catch {
      // It is read again with the next change.
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

  /** Puts a message into the running turn. @param {string} text @param {Json[]} blocks */
  async steer(text, blocks) {
    await this.try(async () => {
      try {
        await this.promote();
        const params = { sessionId: this.id, prompt: blocks, _meta: { steering: { idleBehavior: 'promptRequired' } } };
        const { outcome } = await this.link.request('_session/steering', params);
        if (outcome === 'promptRequired') await this.prompt(text, blocks);
        else if (outcome !== 'injected' && outcome !== 'startedNewTurn') throw new Refusal('the agent did not take it');
        this.fill();
      } catch (error) {
        this.returned = text;
        throw error;
      }
    });
  }

  /** Ends the running turn, and takes back the queued prompts unless the person wants them to run: their text is in the field
   * again. @param {boolean} [turnOnly] */
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
      this.fill();
    });
  }

  /** @param {string} option @param {unknown} value */
  setOption(option, value) {
    return this.try(async () => {
      await this.promote();
      const type = typeof value === 'boolean' ? { type: 'boolean' } : {};
      const params = { sessionId: this.id, configId: option, ...type, value };
      this.knows(await this.link.request('session/set_config_option', params));
      this.fill();
    });
  }
}
