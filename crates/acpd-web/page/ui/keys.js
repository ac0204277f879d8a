// @ts-check
// Keys outside of fields. They can be turned off, because speech input or chance may press keys.

import { useEffect } from '../lib/hooks.js';
import { kept, navigate } from '../store.js';

/** @typedef {import('./stream.js').Stream} Stream */
/** @typedef {{current: Stream | null}} StreamRef */

/** Key, description, action. @type {[string, string, (stream: Stream | null, store: import('../store.js').Store) => void][]} */
export const KEYS = [
  ['j', 'next block', (stream) => stream?.step(1)],
  ['k', 'previous block', (stream) => stream?.step(-1)],
  ['o', 'fold, unfold', (stream) => stream?.toggleChosen()],
  [']', 'next prompt', (stream) => stream?.step(1, (item) => item.kind === 'prompt')],
  ['[', 'previous prompt', (stream) => stream?.step(-1, (item) => item.kind === 'prompt')],
  ['G', 'to the end', (stream) => stream?.toEnd()],
  ['i', 'write', () => document.getElementById('prompt')?.focus()],
  ['g i', 'all sessions', () => {
    navigate({ view: 'inbox' });
    /** @type {HTMLElement | null} */ (document.querySelector('.side a.entry'))?.focus();
  }],
  ['n', 'new session', () => navigate({ view: 'new' })],
  ['/', 'search', () => navigate({ view: 'search' })],
  ['?', 'help', () => navigate({ view: 'help' })],
  ['Escape', 'leave a field, go back', (_, store) => store.back()],
];

export const areKeysOn = () => kept.get('keys') !== 'off';

/** @param {import('../store.js').Store} store @param {StreamRef} stream */
export function useKeys(store, stream) {
  useEffect(() => {
    let before = '';
    /** @param {KeyboardEvent} event */
    const press = (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      const isTyped = target.closest('input, textarea, select, [contenteditable]');
      if (event.key === 'Escape' && isTyped) target.blur();
      if (isTyped || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || store.signed === 'out' || !areKeysOn()) return;
      const both = `${before} ${event.key}`;
      const found = KEYS.find(([key]) => key === both) ?? KEYS.find(([key]) => key === event.key);
      before = event.key;
      if (!found) return;
      event.preventDefault();
      found[2](stream.current, store);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [store]);
}
