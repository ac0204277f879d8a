// @ts-check
// No word of an agent reaches what every object has: `constructor`, `__proto__`.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

import { Blocks, plain } from '../../page/blocks.js';
import { lookUp } from '../../page/lookup.js';
import { groupSummary, rows } from '../../page/rows.js';
import { askedLine } from '../../page/ui/inbox.js';
import { languageOf } from '../../page/ui/code.js';
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
      const isHelper = path.endsWith('/lookup.js') && whole === '[word]';
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

test('one_hostile_word_anywhere_leaves_the_rest_shown', () => {
  for (const word of WORDS) {
    const blocks = new Blocks();
    for (const seq of [1, 2]) {
      blocks.take('_page/block', { id: seq, seq, last: seq, turn: 0, kind: 'call', tool: word, progress: 'done', folding: 'closed', line: [['plain', word]], has: 'line' });
    }
    blocks.take('_page/head', { options: [{ id: word, category: word }] });
    assert.equal(blocks.option('model'), undefined);
    const [group] = rows(blocks.turns[0].blocks);
    assert.ok(Array.isArray(group));
    assert.equal(plain(groupSummary(group)), 'used 2 tools');
    assert.equal(askedLine({ question: { kind: 'permission', toolKind: word, title: 'x' } })[0], 'do');
    assert.equal(languageOf(word), undefined);
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
