// @ts-check
// Small parts that others are made of.

import { useState } from '../lib/hooks.js';
import { html } from './html.js';

/** A line of a summary. @param {{line: import('../fold/rows.js').Line}} props */
export const Spans = ({ line }) =>
  line.map(([role, text]) => (role === 'plain' ? text : html`<span class=${`is-${role}`}>${text}</span>`));

/** Copies a text. @param {{text: string, label?: string}} props */
export function Copy({ text, label = 'Copy' }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    // Without a permission nothing is copied, and the button does not say so.
    await navigator.clipboard?.writeText(text).then(() => {
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    }, () => {});
  };
  return html`<button type="button" class="copy quiet" onClick=${copy}>${isDone ? 'Copied' : label}</button>`;
}

/** What a state looks like: a sign and its word. */
/** @type {Record<string, [string, string]>} */
const MARKS = {
  question: ['?', 'asks'], form: ['?', 'asks'], login: ['@', 'wants a login'], interrupted: ['!', 'interrupted'],
  blocked: ['!', 'blocked'], working: ['●', 'works'], silent: ['◌', 'silent'], resting: ['', ''],
};

/** @param {{what: string}} props */
export function Mark({ what }) {
  const [sign, word] = MARKS[what];
  return html`<span class=${`mark is-${what}`} aria-hidden="true">${sign}</span>${word && html`<span class="unseen">${word}: </span>`}`;
}

/** An error or a sentence, and its way out. @param {{text: string, hint?: string, onClose?: () => void}} props */
export const Trouble = ({ text, hint, onClose }) => html`<div class="trouble" role="alert">
  <div><strong>${text}</strong>${hint && html`<div class="hint">${hint}</div>`}</div>
  ${onClose && html`<button type="button" class="quiet" aria-label="close" onClick=${onClose}>✕</button>`}
</div>`;

/** The head of a view beside the inbox. @param {{title: string}} props */
export const Top = ({ title }) => html`<header class="session-head"><a class="button quiet back" href="#/" aria-label="all sessions">‹</a>
  <div class="names"><h1>${title}</h1></div></header>`;
