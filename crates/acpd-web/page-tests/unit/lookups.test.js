// @ts-check
// No word of an agent reaches what every object has: `constructor`, `__proto__`.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

import { lookUp, textOf } from '../../page/fold/block.js';
import { State } from '../../page/fold/fold.js';
import { optionWords, saysTheOpposite } from '../../page/fold/option.js';
import { groupSummary, rows } from '../../page/fold/rows.js';
import { plain, summary } from '../../page/fold/summary.js';
import { outputOf } from '../../page/fold/output.js';
import { askedLine } from '../../page/ui/inbox.js';
import { languageOf } from '../../page/ui/code.js';
import { journals } from './corpus.js';
import { WORDS } from './hostile.js';

const page = new URL('../../page/', import.meta.url);

/** Names of numbers. An index of other names is a word that somebody may have chosen. */
const NUMBERS = new Set(['at', 'index', 'last', 'first', 'start', 'end', 'message', 'node', 'step', 'above', 'from', 'to', 'open', 'flags',
  'shown', 'rest', 'way', 'words', 'length', 'this', 'range', 'items', 'rows', 'children', 'indexOf', 'child', 'Math', 'max', 'min', 'floor', 'tries',
  'PAUSES', 'WORDS', 'tokens', 'turns']);

/** Whether an index is a place in a list, or a class of a regular expression. @param {string} index */
const isPlace = (index) => index.startsWith('^') || (!/['"`]/.test(index) && (index.match(/[A-Za-z_$]\w*/g) ?? []).every((name) => NUMBERS.has(name)));

/** The source without comments. @param {string} source */
const code = (source) => source.replace(/\/\*[^]*?\*\/|(?<=^|\s)\/\/ .*$/gm, '');

test('tables_are_looked_up_by_one_helper', () => {
  /** @type {string[]} */
  const wrong = [];
  for (const entry of readdirSync(page, { recursive: true, withFileTypes: true })) {
    const path = `${entry.parentPath}/${entry.name}`;
    if (!entry.isFile() || !entry.name.endsWith('.js') || path.includes('/lib/')) continue;
    for (const [whole, index] of code(readFileSync(path, 'utf8')).matchAll(/(?<=[\w$)\]]\??\.?)\[((?:[^[\]]|\[[^[\]]*\])*)\]/g)) {
      const isHelper = path.endsWith('/fold/block.js') && whole === '[word]';
      if (!isPlace(index) && !isHelper) wrong.push(`${path.slice(page.pathname.length)}: ${whole}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('words_that_every_object_has_are_not_in_tables', () => {
  for (const word of WORDS) assert.equal(lookUp({ a: 1 }, word), undefined, word);
  assert.equal(lookUp(JSON.parse('{"__proto__":1}'), '__proto__'), 1);
  assert.equal(lookUp({ a: 1 }, 'a'), 1);
});

/** Puts a word in the place of each text, one after the other. @param {any} value @param {string} word @returns {any[]} */
function poisoned(value, word) {
  if (typeof value === 'string') return [word];
  if (typeof value !== 'object' || value === null) return [];
  return Object.keys(value).flatMap((name) => poisoned(value[name], word).map((inner) => {
    const copy = Array.isArray(value) ? [...value] : { ...value };
    copy[name] = inner;
    return copy;
  }));
}

test('one_hostile_word_anywhere_leaves_the_rest_shown', () => {
  for (const word of WORDS) {
    for (const { session, entries } of journals) {
      entries.forEach(({ seq, line }, at) => {
        for (const member of ['update', 'outcome', 'answer', 'usage']) {
          if (!line.params[member]) continue;
          for (const value of poisoned(line.params[member], word)) {
            const state = new State(session);
            const hostile = { ...line, params: { ...line.params, [member]: value } };
            for (const entry of entries.slice(Math.max(0, at - 3), at)) state.foldEntry(entry);
            state.foldEntry({ seq, line: hostile });
            for (const entry of entries.slice(at + 1, at + 3)) state.foldEntry(entry);
            const blocks = state.turns.flatMap((turn) => turn.blocks);
            for (const block of blocks) {
              assert.equal(typeof plain(summary(block)), 'string', `${word} in ${JSON.stringify(hostile)}`);
              assert.equal(typeof textOf(block), 'string');
              outputOf(block.call ?? {});
            }
            for (const row of rows(blocks)) if (Array.isArray(row)) groupSummary(row);
          }
        }
      });
    }
    assert.equal(askedLine({ question: { kind: 'permission', toolKind: word, title: 'x' } })[0], 'do');
    assert.equal(languageOf(word), undefined);
  }
});

test('an option is said in the words that the terminal has, and a name that says the opposite is found', () => {
  const rows = JSON.parse(readFileSync(new URL('../../../acpd-view/fixtures/options.json', import.meta.url), 'utf8'));
  assert.ok(rows.length > 20);
  for (const { kind, name, words, opposite } of rows) {
    assert.equal(optionWords(kind, name), words);
    assert.equal(saysTheOpposite(kind, name), opposite, `${kind} ${name}`);
  }
});

test('the host of a page stands before everything that the agent says', () => {
  for (const [url, host] of [
    ['https://example.org/a?b=https://c.example/', 'example.org'], ['https://good.example@evil.example:81/x', 'evil.example:81'],
    ['https://good.example\\@evil.example/', 'good.example'], ['https://a@b@evil.example#good.example', 'evil.example'],
  ]) {
    assert.deepEqual(askedLine({ question: { kind: 'url', message: 'Log in', url } }), ['open', `a page on ${host}: Log in (${url})`]);
  }
});
