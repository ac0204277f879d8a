// @ts-check
// Small shared parts.

import { lookUp } from '../lookup.js';
import { verbatim } from '../text/escape.js';
import { useState } from '../lib/hooks.js';
import { Component } from '../lib/preact.js';
import { html } from './html.js';

/** @param {{line?: import('../blocks.js').Line}} props */
export const Spans = ({ line = [] }) =>
  line.map(([role, text]) => (role === 'plain' ? text : html`<span class=${`is-${role}`}>${text}</span>`));

/** A button that copies a text. @param {{text: string, label?: string}} props */
export function Copy({ text, label = 'Copy' }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    // Without a permission nothing is copied, and the button does not change.
    await navigator.clipboard?.writeText(text).then(() => {
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    }, () => {});
  };
  return html`<button type="button" class="copy quiet" onClick=${copy}>${isDone ? 'Copied' : label}</button>`;
}

/** Sign and word of each state. */
/** @type {Record<string, [string, string]>} */
const MARKS = {
  question: ['?', 'asks'], form: ['?', 'asks'], login: ['@', 'wants a login'], interrupted: ['!', 'interrupted'],
  blocked: ['!', 'blocked'], working: ['●', 'works'], silent: ['◌', 'silent'], resting: ['', ''],
};

/** @param {{what: string}} props */
export function Mark({ what }) {
  const [sign, word] = lookUp(MARKS, what) ?? ['', ''];
  return html`<span class=${`mark is-${what}`} aria-hidden="true">${sign}</span>${word && html`<span class="unseen">${word}: </span>`}`;
}

/** An error or a sentence, its way out, and the last output of the agent.
 * @param {{text: string, hint?: string, output?: string, onClose?: () => void}} props */
export const Trouble = ({ text, hint, output, onClose }) => html`<div class="trouble" role="alert">
  <div><strong>${text}</strong>${hint && html`<div class="hint">${hint}</div>`}
    ${output && html`<pre class="output" tabindex="0">${output.trimEnd().split('\n').map(verbatim).join('\n')}</pre>`}</div>
  ${onClose && html`<button type="button" class="quiet" aria-label="close" onClick=${onClose}>✕</button>`}
</div>`;

/** Keeps an error of its children from the rest of the page. Another `of` tries again.
 * @extends {Component<{of?: unknown, what: string, hint?: string, children?: any}, {hasFailed: boolean}>} */
export class Guard extends Component {
  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  /** @param {unknown} error */
  componentDidCatch(error) {
    console.warn(`${this.props.what} could not be shown:`, error);
  }

  /** @param {{of?: unknown}} before */
  componentDidUpdate(before) {
    if (before.of !== this.props.of && this.state.hasFailed) this.setState({ hasFailed: false });
  }

  render() {
    const { what, hint, children } = this.props;
    if (!this.state.hasFailed) return children;
    return html`<p class="not-shown is-warning">${what} could not be shown${hint && html`<span class="hint"> · ${hint}</span>`}</p>`;
  }
}

/** The head of a view next to the inbox. @param {{title: string}} props */
export const Top = ({ title }) => html`<header class="session-head"><a class="button quiet back" href="#/" aria-label="all sessions">‹</a>
  <div class="names"><h1>${title}</h1></div></header>`;
