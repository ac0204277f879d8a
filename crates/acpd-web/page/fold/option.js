// @ts-check
// An option of a question: what choosing it does, in acpd's words, before the name that the agent gives it. The same as
// `acpd-view/src/about.rs`; `acpd-view/fixtures/options.json` holds the two together.

import { lookUp } from './block.js';
import { oneLine } from './escape.js';

/** The word for a kind, and names that say no more. @type {Record<string, [string, string[]]>} */
const KINDS = {
  allow_once: ['allow once', ['allow', 'allow once', 'yes', 'approve', 'accept']],
  allow_always: ['allow always', ['allow always', 'always allow']],
  reject_once: ['reject once', ['reject', 'reject once', 'no', 'deny', 'decline']],
  reject_always: ['reject always', ['reject always', 'always reject']],
};
const YES = ['yes', 'allow', 'approve', 'accept', 'ok', 'permit', 'proceed', 'grant'];
const NO = ['no', 'reject', 'deny', 'refuse', 'decline', 'cancel', 'abort', 'disallow', 'block'];
const NOT = ['not', "don't", 'dont', 'never', 'no'];

/** What an option does, then its name in quotes if that says more. @param {string} kind @param {string} name */
export function optionWords(kind, name) {
  const [word, plain] = lookUp(KINDS, kind) ?? ['other answer', []];
  const said = name.trim().toLowerCase().replaceAll('_', ' ');
  return plain.includes(said) ? oneLine(name) : `${word}: "${oneLine(name)}"`;
}

/** Whether the name of an option says the opposite of what choosing it does, as far as English words tell.
 * @param {string} kind @param {string} name */
export function saysTheOpposite(kind, name) {
  const words = name.toLowerCase().replaceAll('’', "'").split(/[^\p{L}\p{N}']+/u).filter(Boolean);
  /** @param {string[]} of */
  const says = (of) => words.some((word, at) => of.includes(word) && !(at > 0 && NOT.includes(words.at(at - 1) ?? '')));
  /** @param {string[]} of */
  const begins = (of) => of.includes(words.at(0) ?? '');
  const isNegated = words.some((word, at) => at > 0 && YES.slice(1).includes(word) && NOT.includes(words.at(at - 1) ?? ''));
  if (kind === 'allow_once' || kind === 'allow_always') return (begins(NO) || says(NO.slice(1)) || isNegated) && !begins(YES);
  if (kind === 'reject_once' || kind === 'reject_always') return (begins(YES) || says(YES.slice(1))) && !begins(NO);
  return false;
}
