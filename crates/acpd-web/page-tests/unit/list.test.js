// @ts-check
// The heights of rows add up, and never more rows than allowed are in the document.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Heights, MOUNTED, visible } from '../../page/list.js';
import { random } from './random.js';

test('rows begin where those above them end', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const next = random(seed);
    const plain = Array.from({ length: 1 + next(100) }, () => next(50));
    const heights = new Heights(plain);
    for (let change = 0; change < 20; change++) {
      const at = next(plain.length);
      const height = next(300);
      assert.equal(heights.set(at, height), plain[at] !== height);
      plain[at] = height;
    }
    let top = 0;
    plain.forEach((height, at) => {
      assert.equal(heights.top(at), top);
      if (height > 0) {
        assert.equal(heights.at(top), at, `seed ${seed}, the first pixel of row ${at}`);
        assert.equal(heights.at(top + height - 1), at, 'its last one');
      }
      top += height;
    });
    assert.equal(heights.total, top);
    assert.ok(heights.at(top + 1000) < plain.length);
  }
});

test('what is on the screen is in the document, and not much more', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const next = random(seed);
    const heights = new Heights(Array.from({ length: 1 + next(10_000) }, () => 20 + next(200)));
    const [screen, top] = [400 + next(1000), next(heights.total)];
    const [from, to] = visible(heights, top, screen);
    assert.ok(to - from <= MOUNTED);
    assert.ok(heights.top(from) <= top);
    assert.ok(to === heights.length || heights.top(to) >= Math.min(top + screen, heights.total));
  }
});

test('without rows nothing is in the document', () => {
  assert.deepEqual(visible(new Heights([]), 0, 800), [0, 0]);
});
