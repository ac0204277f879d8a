// @ts-check
// The fold makes the blocks that the fold in Rust makes, however a journal was read.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isCall, isMessage, textOf } from '../../page/fold/block.js';
import { verbatim } from '../../page/fold/escape.js';
import { State } from '../../page/fold/fold.js';
import { valueName } from '../../page/fold/header.js';
import { outputOf } from '../../page/fold/output.js';
import { groupSummary, rows } from '../../page/fold/rows.js';
import { plain, summary } from '../../page/fold/summary.js';
import { journals } from './corpus.js';
import { random } from './random.js';

/** @typedef {import('../../page/fold/block.js').Block} Block */

/** @param {import('../../page/fold/block.js').Id} id */
const shownId = (id) => {
  if (typeof id === 'number') return id;
  const number = Number(id.slice(1));
  return id.startsWith('a') ? { around: number } : { question: number };
};

/** A block as the corpus has it. @param {Block} block @returns {object} */
const shown = (block) => ({
  id: shownId(block.id), last: block.last, kind: block.kind, progress: block.progress, folding: block.folding,
  summary: plain(summary(block)),
  ...(block.partial && { partial: true }),
  ...(isMessage(block) && { text: textOf(block) }),
  ...(outputOf(block.call ?? {}).length > 0 && { output: outputOf(block.call ?? {}).map(verbatim) }),
  ...(block.kind === 'subagent' && { rows: shownRows(block.blocks ?? []) }),
});

/** @param {Block[]} blocks @returns {object[]} */
const shownRows = (blocks) => rows(blocks).map((row) =>
  Array.isArray(row) ? { kind: 'group', summary: plain(groupSummary(row)), rows: row.map(shown) } : shown(row));

/** @param {State} state */
function shownState({ header, turns, questions }) {
  const model = header.option('model');
  return {
    header: {
      title: header.title ?? null, mode: header.mode ?? null, model: model ? valueName(model) : null,
      commands: header.commands.map((command) => command.name),
      usage: header.usage ? [header.usage.used, header.usage.size] : null, turn: header.turn ?? null,
      working: header.working,
    },
    turns: turns.map((turn) => shownRows(turn.blocks)),
    questions: questions.map(shown),
  };
}

/** All that can be told of a state. @param {State} state */
const whole = (state) => ({
  ...shownState(state), plan: state.header.plan, options: state.header.options, cost: state.header.usage?.cost,
  first: state.first, at: state.at, started: state.turns.map((turn) => turn.started),
});

/** @param {string} session @param {{seq: number, line: unknown}[]} entries */
function folded(session, entries) {
  const state = new State(session);
  for (const entry of entries) state.foldEntry(entry);
  return state;
}

/** @param {(typeof journals)[0]} journal */
function live({ session, lines }) {
  const state = new State(session);
  for (const line of lines) state.fold(line);
  return state;
}

test('the corpus is there', () => assert.ok(journals.length >= 10));

for (const journal of journals) {
  test(`${journal.name} is the blocks that Rust makes of it`, () => {
    assert.deepEqual(shownState(live(journal)), journal.blocks);
  });

  test(`${journal.name} is the same replayed and live`, () => {
    const state = live(journal);
    state.closeAllQuestions();
    assert.deepEqual(shownState(state).turns, shownState(folded(journal.session, journal.entries)).turns);
  });

  test(`${journal.name} has the same turns when it is cut off at one`, () => {
    const all = folded(journal.session, journal.entries);
    all.turns.forEach((turn, at) => {
      if (!turn.started) return;
      const from = journal.entries.findIndex((entry) => entry.seq === turn.started?.seq);
      const end = folded(journal.session, journal.entries.slice(from));
      assert.deepEqual(shownState(end).turns, shownState(all).turns.slice(at));
    });
  });

  test(`${journal.name} is not changed by what comes again after a lost connection`, () => {
    const state = live(journal);
    const before = whole(state);
    for (const { line } of journal.entries) assert.equal(state.fold(line).size, 0);
    assert.deepEqual(whole(state), before);
  });

  test(`${journal.name} tells which blocks a line changes`, () => {
    const state = new State(journal.session);
    for (const line of journal.lines) {
      const before = new Map(blocksOf(state).map((block) => [block.id, structuredClone(shown(block))]));
      const changed = state.fold(line);
      const after = new Map(blocksOf(state).map((block) => [block.id, shown(block)]));
      assert.equal(after.size, blocksOf(state).length, 'an id stands for one block');
      for (const id of new Set([...before.keys(), ...after.keys()])) {
        if (changed.has(id)) continue;
        assert.deepEqual(after.get(id), before.get(id), `${id} is not told`);
      }
    }
  });

  test(`${journal.name} never folds away what a person has to decide, nor a failure`, () => {
    const state = new State(journal.session);
    for (const line of journal.lines) {
      state.fold(line);
      assert.ok(state.questions.every((block) => block.folding === 'open'));
      const asked = state.askedAbout();
      for (const turn of state.turns) {
        checkOpen(turn.blocks, asked);
        const isWarned = turn.blocks.filter((block) => ['warning', 'error'].includes(block.notice?.severity ?? ''));
        for (const block of [...isWarned, ...turn.blocks.filter((it) => it.kind === 'gap')]) {
          assert.notEqual(block.folding, 'closed', plain(summary(block)));
        }
        for (const row of rows(turn.blocks)) {
          if (!Array.isArray(row)) continue;
          const failed = row.filter((block) => isCall(block) && block.progress === 'failed').length;
          if (failed > 0) assert.match(plain(groupSummary(row)), new RegExp(`, ${failed} failed`));
        }
      }
    }
  });
}

/** All blocks, also those inside of subagents. @param {State} state */
function blocksOf(state) {
  /** @param {Block[]} blocks @returns {Block[]} */
  const all = (blocks) => blocks.flatMap((block) => [block, ...all(block.blocks ?? [])]);
  return all([...state.turns.flatMap((turn) => turn.blocks), ...state.questions]);
}

/** @param {Block[]} blocks @param {Set<string>} asked @returns {boolean} whether there was such a block */
function checkOpen(blocks, asked) {
  let any = false;
  for (const block of blocks) {
    const inside = checkOpen(block.blocks ?? [], asked);
    const isIt = inside || asked.has(block.session ?? '') || asked.has(block.call?.toolCallId ?? '');
    if (isIt) assert.equal(block.folding, 'open');
    any ||= isIt;
  }
  return any;
}

test('a journal is the same however it was paged', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const next = random(seed);
    const journal = journals[next(journals.length)];
    const { entries, session } = journal;
    const wanted = whole(folded(session, entries));
    // The newest page first, then the older ones, and live lines at some moment in between.
    const cut = next(entries.length);
    const read = entries.slice(0, cut);
    let later = entries.slice(cut);
    const cuts = Array.from({ length: next(6) }, () => next(entries.length)).sort((a, b) => b - a);
    const state = new State(session);
    let end = read.length;
    [...cuts, 0].forEach((cut, number) => {
      const from = Math.min(cut, end);
      const page = read.slice(from, end);
      if (number === 0) for (const entry of page) state.foldEntry(entry);
      else state.earlier(page);
      end = from;
      if (number === 1) {
        for (const entry of later) state.foldEntry(entry);
        later = [];
      }
    });
    for (const entry of later) state.foldEntry(entry);
    assert.deepEqual(whole(state), wanted, `seed ${seed}: ${journal.name}`);
  }
});

test('whatever an agent writes is folded', () => {
  const leaves = ['s', 'k', '', 'completed', 'failed', 'idle', 'execute', '\x1b[2J', 0, 2, null, [], {},
    { type: 'text', text: 'x' }, { state: 'idle' }, [{ type: 'diff', path: 'p', newText: 'x' }], [null, 7], true];
  const names = ['toolCallId', 'status', 'title', 'content', 'messageId', 'entries', 'sessionId', 'state', 'kind',
    'planId', 'compactionId', 'plan', 'currentModeId', 'rawInput', 'configOptions', 'availableCommands', 'used'];
  const kinds = ['user_message_chunk', 'agent_message_chunk', 'agent_thought_chunk', 'tool_call', 'tool_call_update',
    'plan', 'plan_update', 'plan_removed', 'subagent_update', 'compaction_update', 'notice', 'current_mode_update',
    'config_option_update', 'available_commands_update', 'usage_update', 'session_info_update', '__proto__', 7];
  const methods = ['session/update', 'session/update', 'session/update', '_acpd/turn_started', '_acpd/turn_ended',
    '_acpd/restored', '_acpd/skipped', '_acpd/answered', '_acpd/permission_decided', '_acpd/notice', 'toString'];
  for (let seed = 1; seed <= 500; seed++) {
    const next = random(seed);
    /** @template T @param {T[]} list */
    const one = (list) => list[next(list.length)];
    const state = new State('s');
    for (let seq = 1; seq < 40; seq++) {
      const members = () => Object.fromEntries(Array.from({ length: next(6) }, () => [one(names), one(leaves)]));
      const params = { ...members(), sessionId: one(['s', 's', 'k', 3]), turn: 1, at: 5, bytes: one([7, 'x']), limit: 1,
        level: one(['lost', 'reseeded', 'partial', 3]), outcome: one([{ kind: 'stopped', stopReason: 'x' }, { kind: 'error' }, 3]),
        update: one([{ ...members(), sessionUpdate: one(kinds) }, { ...members(), sessionUpdate: one(kinds) }, null]) };
      for (const id of state.foldEntry({ seq, line: { method: one(methods), params } })) {
        const block = state.get(id);
        if (block) assert.equal(typeof plain(summary(block)), 'string');
      }
    }
    for (const turn of state.turns) rows(turn.blocks).forEach((row) => Array.isArray(row) && groupSummary(row));
  }
});

test('a cost that is not told again stays', () => {
  /** @param {number} seq @param {object} more */
  const usage = (seq, more) => ({ seq, line: { method: 'session/update', params: { sessionId: 's',
    update: { sessionUpdate: 'usage_update', used: seq, size: 9, ...more } } } });
  const lines = [usage(1, { cost: { amount: 0.25, currency: 'USD' } }), usage(2, {}), usage(3, {})];
  const paged = folded('s', lines.slice(1));
  assert.equal(paged.header.usage?.cost, undefined);
  paged.earlier(lines.slice(0, 1));
  const replayed = folded('s', lines);
  assert.deepEqual(paged.header.usage, { used: 3, size: 9, cost: { amount: 0.25, currency: 'USD' } });
  assert.deepEqual(replayed.header.usage, paged.header.usage);
});

test('plans are left out where the daemon says so, also of older lines and of bodies that come again', () => {
  const journal = journals.find((it) => it.lines.some((line) => JSON.stringify(line).includes('"plan"')));
  assert.ok(journal);
  for (const hidesPlans of [false, true]) {
    const state = new State(journal.session);
    state.hidesPlans = hidesPlans;
    for (const line of journal.lines) state.fold(line);
    const older = state.anew();
    older.earlier(journal.entries);
    for (const it of [state, older]) {
      assert.equal(it.turns.some((turn) => turn.blocks.some((block) => block.kind === 'plan')), !hidesPlans);
      assert.equal(it.header.plan.length > 0, !hidesPlans);
    }
  }
});
