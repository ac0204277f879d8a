// @ts-check
// Bodies that are dropped and read again are what they were.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { State } from '../../page/fold/fold.js';
import { fill, shed } from '../../page/fold/shed.js';
import { plain, summary } from '../../page/fold/summary.js';
import { journals } from './corpus.js';

/** @param {State} state */
const blocksOf = (state) => state.turns.flatMap((turn) => turn.blocks);

/** Without what changes anyway. @param {State} state */
const whole = (state) => JSON.parse(JSON.stringify(blocksOf(state), (name, value) => (name === 'rev' ? undefined : value)));

/** @param {string} session @param {{seq: number, line: unknown}[]} entries */
function folded(session, entries) {
  const state = new State(session, '/w');
  for (const entry of entries) state.foldEntry(entry);
  return state;
}

/** Around each journal, so many blocks that all of it is far away. @param {number} seq */
const answers = (seq) => Array.from({ length: 300 }, (_, at) => ({ seq: seq + at, line: { method: 'session/update', params: {
  sessionId: '', update: { sessionUpdate: 'agent_message_chunk', messageId: `m${at}`, content: { type: 'text', text: 'x' } } } } }));

for (const { name, session, entries } of journals) {
  test(`the bodies of ${name} are dropped and read again`, () => {
    const end = entries.at(-1)?.seq ?? 0;
    const all = [...entries, ...answers(end + 1).map((entry) => ({ seq: entry.seq, line: { ...entry.line, params: { ...entry.line.params, sessionId: session } } }))];
    const state = folded(session, all);
    const [before, summaries] = [whole(state), blocksOf(state).map((block) => plain(summary(block, '/w')))];
    shed(state, Infinity, 1);
    const gone = blocksOf(state).filter((block) => block.shed);
    assert.ok(gone.length > 0 && gone.every((block) => block.seq <= end + 100));
    for (const block of gone) assert.ok(!block.content?.length && !block.blocks?.length && !block.call?.content);
    assert.deepEqual(blocksOf(state).map((block) => plain(summary(block, '/w'))), summaries);
    // In pages that cut through blocks, some come back, and with all of them all.
    for (let from = 0; from < all.length; from += 7) fill(state, all.slice(from, from + 7));
    fill(state, all);
    assert.deepEqual(blocksOf(state).filter((block) => block.shed), []);
    assert.deepEqual(whole(state), before);
  });
}

test('what is close to the line that is looked at stays, and little is not dropped', () => {
  const all = answers(1).map((entry) => ({ ...entry, line: { ...entry.line, params: { ...entry.line.params, sessionId: 's' } } }));
  const state = folded('s', all);
  shed(state, 150, 300);
  assert.ok(blocksOf(state).every((block) => !block.shed), 'there is room for all');
  shed(state, 10, 4);
  assert.deepEqual(blocksOf(state).filter((block) => block.shed).map((block) => block.seq), Array.from({ length: 88 }, (_, at) => at + 212));
});
