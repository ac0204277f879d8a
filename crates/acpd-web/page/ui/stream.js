// @ts-check
// The stream of a session: a list whose rows around the screen are in the document.
//
// At its end the view follows new rows. Only a gesture of the user (wheel, touch, keys, the scroll bar)
// leaves the end or returns to it; everything else keeps the row on the screen in place.

import { isMissing } from '../blocks.js';
import { Component } from '../lib/preact.js';
import { Heights, visible } from '../list.js';
import { lookUp } from '../lookup.js';
import { rows as rowsOf } from '../rows.js';
import { RowView } from './block.js';
import { html } from './html.js';

/** @typedef {import('../blocks.js').Block} Block */
/** @typedef {import('../rows.js').Row} Row */
/** @typedef {{key: string, seq: number, rev: number, row: Row, kind: string, isRunning: boolean}} Item */

/** Pixels from the end that count as the end. */
const END = 40;
/** Time for which scrolling continues after a gesture (ms). */
const GESTURE = 900;
/** Time after a gesture upwards in which the browser may not have scrolled yet (ms). */
const LEAVING = 300;
/** Events that end a press. */
const RELEASES = ['pointerup', 'pointercancel'];
const UP = ['ArrowUp', 'PageUp', 'Home'];
/** Heights of unmeasured rows. @type {Record<string, number>} */
const GUESSES = { prompt: 76, answer: 120, edit: 140, command: 90, turn: 44 };
const GUESS = 40;

/** Pixels above the line of a search hit. */
const ABOVE = 80;

/** The range of words in an element. @param {Element} element @param {string} words @returns {Range | undefined} */
function rangeOf(element, words) {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const at = text.nodeValue?.toLowerCase().indexOf(words.toLowerCase()) ?? -1;
    if (at < 0) continue;
    const range = new Range();
    range.setStart(text, at);
    range.setEnd(text, at + words.length);
    return range;
  }
  return undefined;
}

/** @param {Item} item */
const guess = (item) => lookUp(GUESSES, item.kind) ?? GUESS;

/** @param {Event} event */
function mayGoUp(event) {
  if (event instanceof WheelEvent) return event.deltaY < 0;
  if (event instanceof KeyboardEvent) return UP.includes(event.key) || (event.key === ' ' && event.shiftKey);
  return event.type === 'touchmove';
}

/** @param {Row} row @returns {Item} */
function itemOf(row) {
  const first = Array.isArray(row) ? row[0] : row;
  const key = Array.isArray(row) ? `g${first.id}` : `${first.id}`;
  const rev = Array.isArray(row) ? row.reduce((sum, block) => Math.max(sum, block.rev), 0) : row.rev;
  const isRunning = !Array.isArray(row) && row.progress === 'running';
  return { key, seq: first.seq, rev, row, kind: Array.isArray(row) ? 'group' : row.kind, isRunning };
}

/** A row of the list, which renders only after a change.
 * @extends {Component<{item: Item, at: number, tick: number, choice: number, isChosen: boolean, view: import('./block.js').View}>} */
class ListRow extends Component {
  /** @param {ListRow['props']} next */
  shouldComponentUpdate({ item, at, tick, choice, isChosen }) {
    const now = this.props;
    return item.rev !== now.item.rev || item.row !== now.item.row || at !== now.at || tick !== now.tick
      || choice !== now.choice || isChosen !== now.isChosen;
  }

  render() {
    const { item, at, isChosen, view } = this.props;
    return html`<article class=${`row ${isChosen ? 'is-chosen' : ''}`} tabindex="-1" aria-posinset=${at + 1} aria-setsize="-1"
      aria-busy=${item.isRunning}><${RowView} row=${item.row} view=${view} /></article>`;
  }
}

/** @typedef {{session: import('../session.js').Session, now: number, version: number,
 *   handle: {current: Stream | null}, childOf: (name: string) => import('../lookup.js').Json | undefined}} Props */

/** @extends {Component<Props, {tick: number}>} */
export class Stream extends Component {
  constructor(/** @type {Props} */ props) {
    super(props);
    this.isAtEnd = true;
    /** The row that stays in place. @type {{seq: number, key: string, offset: number}} */
    this.anchor = { seq: 0, key: '', offset: 0 };
    /** The last line that was seen at the end. */
    this.seen = 0;
    this.gestureAt = -Infinity;
    this.leavesAt = -Infinity;
    this.isPressed = false;
    this.isPushed = false;
    this.fills = 0;
    /** The last position that this class scrolled to. */
    this.own = -1;
    /** @type {HTMLElement | null} */ this.box = null;
    /** @type {HTMLElement | null} */ this.rows = null;
    /** @type {Map<string, number>} */ this.measured = new Map();
    /** @type {Item[]} */ this.items = [];
    this.heights = new Heights([]);
    /** @type {[number, number]} */ this.range = [0, 0];
    /** Rows of turns that have not changed. @type {WeakMap<object, {rev: number, choices: number, items: Item[]}>} */
    this.turns = new WeakMap();
    /** The user's folding. @type {Map<string | number, boolean>} */
    this.choices = new Map();
    this.choice = 0;
    /** @type {string | undefined} */ this.chosen = undefined;
    /** Searched words, until they are marked in their row. @type {string | undefined} */
    this.hit = undefined;
    this.width = 0;
    this.observer = new ResizeObserver(() => this.settle());
    /** @type {(event?: Event) => void} */
    this.onGesture = (event) => {
      this.gestureAt = performance.now();
      if (event && mayGoUp(event)) this.leavesAt = this.gestureAt;
    };
  }

  /** A press that began in the stream may end anywhere. */
  onRelease = () => {
    if (!this.isPressed) return;
    this.isPressed = false;
    this.onGesture();
  };

  /** Whether the user may be about to leave the end. */
  get isLeaving() {
    return this.isPressed || performance.now() - this.leavesAt < LEAVING;
  }

  get isGesture() {
    return this.isPressed || performance.now() - this.gestureAt < GESTURE;
  }

  componentDidMount() {
    this.props.handle.current = this;
    this.observer.observe(/** @type {HTMLElement} */ (this.box));
    this.observer.observe(/** @type {HTMLElement} */ (this.rows));
    for (const name of RELEASES) addEventListener(name, this.onRelease);
    this.settle();
  }

  componentWillUnmount() {
    this.observer.disconnect();
    for (const name of RELEASES) removeEventListener(name, this.onRelease);
    if (this.props.handle.current === this) this.props.handle.current = null;
  }

  componentDidUpdate() {
    this.settle();
  }

  /** @param {Block} block @returns {import('../blocks.js').Folding} */
  foldingOf = (block) => {
    const choice = this.choices.get(block.id);
    if (choice === undefined) return block.folding;
    if (choice) return 'open';
    return block.kind === 'prompt' ? { first: 12 } : 'closed';
  };

  /** @param {string | number} key @param {boolean} isOpen */
  toggle = (key, isOpen) => {
    this.choices.set(key, isOpen);
    this.choice++;
    // The pressed head stays under the finger.
    this.hold();
    this.isAtEnd = false;
    this.forceUpdate();
  };

  /** @returns {import('./block.js').View} */
  get view() {
    const { session, now, childOf } = this.props;
    return {
      childOf, follow: (row, told) => session.follow(row, told), now, foldingOf: this.foldingOf, toggle: this.toggle,
      isGroupOpen: (key) => this.choices.get(key) === true, beganAt: (block) => session.began.get(block.id),
    };
  }

  readItems() {
    const { state, fills } = this.props.session;
    /** @type {Item[]} */
    const items = [];
    for (const turn of state.turns) {
      let known = this.turns.get(turn);
      if (!known || known.rev !== turn.rev || known.choices !== this.choice) {
        known = { rev: turn.rev, choices: this.choice, items: rowsOf(turn.blocks, this.foldingOf).map(itemOf) };
        this.turns.set(turn, known);
      }
      items.push(...known.items);
    }
    const isSame = items.length === this.items.length && items.every((item, at) => item.key === this.items[at].key);
    // New rows above the screen push it down, also during scrolling, and so do new bodies.
    if (fills !== this.fills) this.isPushed = true;
    this.fills = fills;
    if (items.length > 0 && this.items.length > 0 && items[0].key !== this.items[0].key) this.isPushed = true;
    this.items = items;
    if (!isSame) this.heights = new Heights(items.map((item) => this.measured.get(item.key) ?? guess(item)));
  }

  /** Remembers the row at the top of the screen, and its position. */
  hold() {
    if (!this.box || !this.rows) return;
    const top = this.box.getBoundingClientRect().top;
    for (const child of this.rows.children) {
      const rect = child.getBoundingClientRect();
      if (rect.bottom <= top + 1) continue;
      const item = this.items[this.range[0] + [...this.rows.children].indexOf(child)];
      if (item) this.anchor = { seq: item.seq, key: item.key, offset: rect.top - top };
      return;
    }
  }

  /** The index of the anchor's row, or of the row that contains it now. */
  anchorAt() {
    const at = this.items.findIndex((item) => item.key === this.anchor.key);
    if (at >= 0) return at;
    const after = this.items.findIndex((item) => item.seq > this.anchor.seq);
    return after < 0 ? this.items.length - 1 : Math.max(0, after - 1);
  }

  /** Measures the rows in the document, and places them. */
  settle() {
    const { box, rows } = this;
    if (!box || !rows) return;
    if (box.clientWidth !== this.width) {
      this.width = box.clientWidth;
      // All rows outside of the document get other heights.
      this.measured.clear();
    }
    [...rows.children].forEach((child, at) => {
      const index = this.range[0] + at;
      const item = this.items[index];
      if (!item) return;
      const { height } = child.getBoundingClientRect();
      this.measured.set(item.key, height);
      this.heights.set(index, height);
    });
    this.pad();
    if (this.isAtEnd && this.isLeaving && box.scrollTop === 0 && box.scrollHeight - box.clientHeight > END) {
      // At the top no scroll event follows a key, so growing content would not leave the end.
      this.isAtEnd = false;
      this.hold();
    }
    if (this.isAtEnd) {
      if (!this.isLeaving) this.scrollTo(box.scrollHeight - box.clientHeight);
    } else if (this.isPushed || !this.isGesture) this.restore();
    this.isPushed = false;
    this.markHit();
    this.askOlder();
    this.props.session.fill(this.missing());
    const wanted = this.wanted();
    if (wanted[0] < this.range[0] || wanted[1] > this.range[1]) this.forceUpdate();
  }

  /** Puts the anchor's row back in place. */
  restore() {
    const { box, rows } = this;
    if (!box || !rows || this.items.length === 0) return;
    const at = this.anchorAt();
    const child = rows.children[at - this.range[0]];
    const top = child ? child.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop : this.heights.top(at);
    this.scrollTo(Math.max(0, top - this.anchor.offset));
  }

  /** Sets the room of the rows outside of the document. */
  pad() {
    if (!this.rows) return;
    const [from, to] = this.range;
    this.rows.style.paddingTop = `${this.heights.top(from)}px`;
    this.rows.style.paddingBottom = `${Math.max(0, this.heights.total - this.heights.top(to))}px`;
  }

  /** @param {number} place */
  scrollTo(place) {
    if (!this.box || Math.abs(this.box.scrollTop - place) < 1) return;
    this.box.scrollTop = place;
    this.own = this.box.scrollTop;
  }

  /** @returns {[number, number]} */
  wanted() {
    const height = this.box?.clientHeight || innerHeight;
    const end = this.heights.total;
    const isFree = !this.isPushed && (this.isGesture || !this.anchor.key);
    const top = this.isAtEnd ? Math.max(0, end - height) : isFree
      ? this.box?.scrollTop ?? 0 : this.heights.top(this.anchorAt()) - this.anchor.offset;
    // An open question may leave little room: at least a whole screen counts as near.
    return visible(this.heights, top, Math.max(height, innerHeight));
  }

  onScroll = () => {
    const { box } = this;
    if (!box || Math.abs(box.scrollTop - this.own) < 1) return;
    this.own = -1;
    if (this.isGesture) {
      this.gestureAt = performance.now();
      const range = box.scrollHeight - box.clientHeight;
      // In a short range, the beginning must not count as the end.
      this.isAtEnd = range - box.scrollTop <= Math.min(END, range / 2);
    }
    this.hold();
    const wanted = this.wanted();
    if (wanted[0] !== this.range[0] || wanted[1] !== this.range[1]) this.forceUpdate();
    else this.askOlder();
  };

  /** Blocks in the document whose shown part was not received. */
  missing() {
    /** @param {Block} block @returns {Block[]} */
    const all = (block) => [block, ...(this.foldingOf(block) === 'closed' ? [] : (block.blocks ?? []).flatMap(all))];
    const shown = this.items.slice(...this.range).flatMap(({ row, key }) =>
      !Array.isArray(row) ? [row] : this.choices.get(key) ? row : []);
    return shown.flatMap(all).filter((block) => isMissing(block, this.foldingOf(block)));
  }

  askOlder() {
    const { session } = this.props;
    const isNear = this.box && this.box.scrollTop < 2 * this.box.clientHeight;
    if (isNear && session.state.hasOlder && session.phase === 'live') session.older();
  }

  /** Scrolls to the end, and follows it. */
  toEnd = () => {
    this.isAtEnd = true;
    this.leavesAt = -Infinity;
    this.forceUpdate();
  };

  /** Scrolls a row to the top of the screen. @param {number} at */
  show(at) {
    const item = this.items[Math.max(0, Math.min(at, this.items.length - 1))];
    if (!item) return;
    this.isAtEnd = false;
    this.gestureAt = -Infinity;
    this.chosen = item.key;
    this.anchor = { seq: item.seq, key: item.key, offset: 24 };
    this.forceUpdate();
  }

  /** Scrolls to the row with this line, and marks the words. @param {number} seq @param {string} [words] */
  showLine(seq, words) {
    const at = () => {
      const after = this.items.findIndex((item) => item.seq > seq);
      return Math.max(0, after < 0 ? this.items.length - 1 : after - 1);
    };
    const row = this.items[at()]?.row;
    const block = Array.isArray(row) ? row.findLast((block) => block.seq <= seq) : row;
    if (block && (words || Array.isArray(row))) {
      // Leaves its group, and is unfolded.
      this.choices.set(block.id, true);
      this.choice++;
      this.readItems();
    }
    this.hit = words;
    this.show(at());
  }

  /** Marks the searched words, and scrolls to their line. */
  markHit() {
    const row = this.rows?.querySelector('.is-chosen');
    const range = this.hit && row && rangeOf(row, this.hit);
    if (!row || !range) return;
    this.hit = undefined;
    CSS.highlights.set('hit', new Highlight(range));
    this.anchor.offset += Math.min(0, row.getBoundingClientRect().top + ABOVE - range.getBoundingClientRect().top);
    this.restore();
  }

  /** The chosen row, or the one at the top of the screen. */
  chosenAt() {
    const at = this.items.findIndex((item) => item.key === this.chosen);
    if (at >= 0) return at;
    this.hold();
    return this.isAtEnd ? this.items.length : this.anchorAt();
  }

  /** Chooses the row before or after. @param {number} by @param {(item: Item) => boolean} [isIt] */
  step(by, isIt = () => true) {
    let at = this.chosenAt() + by;
    while (at >= 0 && at < this.items.length && !isIt(this.items[at])) at += by;
    if (at >= 0 && at < this.items.length) this.show(at);
    else if (at >= this.items.length) this.toEnd();
  }

  toggleChosen() {
    const item = this.items.find((item) => item.key === this.chosen);
    if (!item) return;
    const key = Array.isArray(item.row) ? item.key : item.row.id;
    const isOpen = Array.isArray(item.row) ? this.choices.get(key) === true : this.foldingOf(item.row) === 'open';
    this.toggle(key, !isOpen);
  }

  render() {
    const { session, now } = this.props;
    this.readItems();
    this.range = this.wanted();
    const [from, to] = this.range;
    const last = this.items[this.items.length - 1]?.seq ?? 0;
    if (this.isAtEnd) this.seen = session.state.at;
    const news = this.isAtEnd ? 0 : this.items.filter((item) => item.seq > this.seen).length;
    const second = Math.floor(now / 1000);
    const view = this.view;
    const shown = this.items.slice(from, to).map((item, at) => html`<${ListRow} key=${item.key} item=${item} at=${from + at}
      isChosen=${item.key === this.chosen} tick=${item.isRunning ? second : 0} choice=${this.choice} view=${view} />`);
    return html`<div class="stream">
      <div class="scroller" tabindex="0" role="region" aria-label="conversation" ref=${(/** @type {HTMLElement} */ it) => { this.box = it; }} onScroll=${this.onScroll}
        onWheel=${this.onGesture} onTouchMove=${this.onGesture} onKeyDown=${this.onGesture}
        onPointerDown=${() => { this.isPressed = true; }}>
        ${session.state.hasOlder && session.phase === 'live' && from === 0 && html`<div class="older is-dim">reading what is older…</div>`}
        ${this.items.length === 0 && html`<div class="empty">${session.phase !== 'loading' ? 'Nothing was said yet.'
          : session.link.tries > 0 ? 'No connection: what was said is read when acpd is back.' : 'Reading…'}</div>`}
        <div class="rows" role="feed" aria-busy=${session.phase === 'loading'} ref=${(/** @type {HTMLElement} */ it) => { this.rows = it; }}>${shown}</div>
      </div>
      ${!this.isAtEnd && last > 0 && html`<button type="button" class="to-end" onClick=${this.toEnd}>↓ ${news > 0 ? `${news} new` : 'to the end'}</button>`}
    </div>`;
  }
}
