// @ts-check
// Sessions and who has begun them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Fleet, nested } from '../../page/fleet.js';

/** @param {string} sessionId @param {string} [parent] @param {object} [more] */
const row = (sessionId, parent, more) => ({
  agent: 'a', sessionId, name: sessionId, cwd: '/w', ...(parent && { parent: { agent: 'a', sessionId: parent } }), ...more,
});

test('sessions that agents have begun are below those of them', () => {
  const rows = ['grandchild:child', 'other', 'child:boss', 'boss', 'stray:gone'].map((it) => {
    const [id, parent] = it.split(':');
    return /** @type {any} */ ({ key: `a/${id}`, session: row(id, parent) });
  });
  const told = nested(rows).map(({ row, depth }) => [row.session?.sessionId, depth]);
  assert.deepEqual(told, [['other', 0], ['boss', 0], ['child', 1], ['grandchild', 2], ['stray', 0]]);
});

test('work is given to the session that was begun for it, else to the one of that name in the folder', () => {
  const fleet = new Fleet();
  fleet.changed({ sessions: [row('1', undefined, { name: 'x' }), row('2', 'boss', { name: 'x', cwd: '/v' }), row('3', undefined, { name: 'y', cwd: '/v' })] });
  assert.equal(fleet.childOf('a/boss', '/w', 'x')?.sessionId, '2');
  assert.equal(fleet.childOf('a/else', '/w', 'x')?.sessionId, '1');
  assert.equal(fleet.childOf('a/boss', '/w', 'y'), undefined);
});

test('the state of machines stays until another one comes', () => {
  const fleet = new Fleet();
  fleet.snapshot({ hosts: [{ name: 'here' }, { name: 'box', error: 'timed out' }] });
  fleet.changed({ sessions: [row('1')] });
  assert.equal(fleet.hosts[1].error, 'timed out');
  fleet.changed({ hosts: [{ name: 'here' }, { name: 'box' }] });
  assert.equal(fleet.hosts[1].error, undefined);
});
