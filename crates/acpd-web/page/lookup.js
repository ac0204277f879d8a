// @ts-check
// Words of others as names in tables.

/** @typedef {Record<string, any>} Json */

/** Returns what a table has under a word, which an agent may have chosen: never what every object has, such as
 * `constructor`. No module looks up a word in any other way.
 * @template T @param {Record<string, T> | undefined} table @param {unknown} word @returns {T | undefined} */
export const lookUp = (table, word) =>
  typeof word === 'string' && table && Object.hasOwn(table, word) ? table[word] : undefined;
