// @ts-check
// Looking up words from outside in tables.

/** @typedef {Record<string, any>} Json */

/** Returns the entry of a word, which an agent may have chosen: never a member of every object, such as
 * `constructor`. No module looks up a word in any other way.
 * @template T @param {Record<string, T> | undefined} table @param {unknown} word @returns {T | undefined} */
export const lookUp = (table, word) =>
  typeof word === 'string' && table && Object.hasOwn(table, word) ? table[word] : undefined;
