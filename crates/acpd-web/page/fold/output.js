// @ts-check
// What a call printed, or what it said, as `acpd-view/src/body.rs` reads it.

import { contentOf } from './block.js';
import { lines, trim, withoutCodes } from './escape.js';
import { NOT_READ } from './lenient.js';

/** Lines without the empty ones and without colours. @param {import('./block.js').Json} call @returns {string[]} */
export const outputOf = (call) => contentOf(call)
  .flatMap(({ type, content }) => (type === 'content' ? Object.keys(content ?? {}).length ? [content.text] : [NOT_READ] : []))
  .filter((text) => typeof text === 'string')
  .flatMap((text) => lines(unfenced(text)))
  .filter((line) => trim(line) !== '')
  .map((line) => withoutCodes(line.replace(/\p{White_Space}+$/u, '')));

/** Without the code block that many agents put it into: a fence that is the first and the last line.
 * @param {string} text */
function unfenced(text) {
  const found = /^(`{3,})[^\n]*\n(?:([^]*)\n)?(`{3,})\p{White_Space}*$/u.exec(text);
  return found && found[1].length >= found[3].length ? found[2] ?? '' : text;
}
