// @ts-check
// Files of a prompt: pictures and sounds as such, text in a code block, others as binary resources.

import { oneLine } from '../text/escape.js';
import { useState } from '../lib/hooks.js';
import { refusedWhy } from '../session.js';
import { html } from './html.js';
import { Trouble } from './parts.js';

/** @typedef {import('../lookup.js').Json} Json */
/** @typedef {import('../session.js').Takes} Takes */
/** @typedef {{all: {name: string, block: Json}[], trouble: string, add: (files: Iterable<File>) => Promise<void>,
 *   remove: (block: Json) => void, clear: () => void, forgive: () => void}} Files */

/** Most bytes of an attached file. */
const MOST_FILE = 4 << 20;

/** @param {Takes} takes what the agent takes @returns {Files} */
export function useFiles(takes) {
  const [all, setAll] = useState(/** @type {Files['all']} */ ([]));
  const [trouble, setTrouble] = useState('');
  return {
    all, trouble, clear: () => setAll([]), forgive: () => setTrouble(''),
    remove: (block) => setAll((now) => now.filter((it) => it.block !== block)),
    add: async (files) => {
      for (const file of files) {
        const block = await blockOf(file, takes).catch((error) => setTrouble(error.message));
        if (block) setAll((now) => [...now, { name: file.name, block }]);
      }
    },
  };
}

/** The content blocks of a prompt. @param {string} text @param {Files} files @returns {Json[]} */
export const blocksOf = (text, files) => [...(text.trim() ? [{ type: 'text', text }] : []), ...files.all.map((file) => file.block)];

/** Attached files, and the error of the last attempt. @param {{files: Files}} props */
export const Attached = ({ files }) => html`
  ${files.trouble && html`<${Trouble} text=${files.trouble} onClose=${files.forgive} />`}
  ${files.all.length > 0 && html`<div class="chips">${files.all.map(({ name, block }) => html`<span class="chip">${oneLine(name)}
    <button type="button" class="quiet" aria-label=${`remove ${oneLine(name)}`} onClick=${() => files.remove(block)}>✕</button></span>`)}</div>`}`;

/** @param {{files: Files, disabled: boolean}} props */
export const Attach = ({ files, disabled }) => html`<label class="quiet attach" title="attach a file"><span aria-hidden="true">+</span><span class="unseen">attach a file</span>
  <input type="file" multiple class="unseen" disabled=${disabled} onChange=${(/** @type {any} */ event) => { files.add([...event.target.files]); event.target.value = ''; }} /></label>`;

/** The content block of a file. @param {File} file @param {Takes} takes @returns {Promise<Json>} */
async function blockOf(file, takes) {
  if (file.size > MOST_FILE) throw new Error(`${oneLine(file.name)} is too big: at most 4 MB can be attached`);
  const data = new Uint8Array(await file.arrayBuffer());
  const block = partOf(file, data);
  const why = refusedWhy(block, takes);
  if (why) throw new Error(`${oneLine(file.name)}: ${why}`);
  return block;
}

/** @param {File} file @param {Uint8Array<ArrayBuffer>} data @returns {Json} */
function partOf({ name, type }, data) {
  if (type.startsWith('image/')) return { type: 'image', mimeType: type, data: base64(data) };
  if (type.startsWith('audio/')) return { type: 'audio', mimeType: type, data: base64(data) };
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(data);
    if (!text.includes('\0')) return { type: 'text', text: `${name}:\n\n${fenced(text)}\n` };
  } catch {
    // The file is no text.
  }
  const uri = `untitled:${encodeURIComponent(name)}`;
  return { type: 'resource', resource: { uri, mimeType: type || 'application/octet-stream', blob: base64(data) } };
}

/** @param {Uint8Array<ArrayBuffer>} data */
function base64(data) {
  let binary = '';
  for (let at = 0; at < data.length; at += 0x8000) binary += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(binary);
}

/** @param {string} text */
function fenced(text) {
  const fence = '`'.repeat(Math.max(2, ...(text.match(/`+/g) ?? []).map((it) => it.length)) + 1);
  return `${fence}\n${text.replace(/\n$/, '')}\n${fence}`;
}
