// @ts-check
// Markdown becomes elements of known kinds, whatever is in it, and the same ones however it grew.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { prose } from '../../page/text/escape.js';
import { Growing, address, markdown } from '../../page/markdown.js';
import { DEEP, HOSTILE, PIECES } from './hostile.js';
import { random } from './random.js';

const KNOWN = new Set(['p', 'h2', 'h3', 'h4', 'h5', 'h6', 'strong', 'em', 'del', 'code', 'pre', 'figure', 'blockquote', 'hr', 'br',
  'a', 'span', 'ul', 'ol', 'li', 'input', 'div', 'table', 'thead', 'tbody', 'tr', 'th', 'td']);
const PROPS = new Set(['children', 'class', 'href', 'target', 'rel', 'title', 'start', 'type', 'disabled', 'checked',
  'aria-label', 'tabindex', 'role', 'text', 'language', 'key', 'ref']);

/** @typedef {{tag: string, props: Record<string, any>, text: string}} Element */

/** All elements of a tree, and its text. @param {any} tree @param {Element[]} all @returns {string} */
function walk(tree, all) {
  if (tree === null || tree === undefined || typeof tree === 'boolean') return '';
  if (Array.isArray(tree)) return tree.map((it) => walk(it, all)).join('');
  if (typeof tree !== 'object') return String(tree);
  const { type, props } = tree;
  if (typeof type === 'function') {
    all.push({ tag: 'code', props, text: props.text ?? '' });
    return props.text ?? '';
  }
  const text = walk(props.children, all);
  all.push({ tag: type, props, text });
  return text;
}

/** @param {string} source */
function read(source) {
  /** @type {Element[]} */
  const elements = [];
  const text = walk(markdown(source), elements);
  return { text, elements };
}

/** @param {string} source */
function check(source) {
  const { text, elements } = read(source);
  for (const { tag, props } of elements) {
    assert.ok(KNOWN.has(tag), `<${tag}> of ${JSON.stringify(source)}`);
    for (const name of Object.keys(props)) assert.ok(PROPS.has(name), `${name} of ${JSON.stringify(source)}`);
    if ('href' in props) {
      assert.match(props.href, /^(https?:\/\/|mailto:)/);
      assert.equal(props.rel, 'noopener noreferrer');
    }
  }
  // Code is escaped where it is shown.
  if (!elements.some(({ tag }) => tag === 'code')) assert.equal(prose(text), text, 'all that is shown can be seen');
}

test('hostile texts become elements that do nothing', () => HOSTILE.forEach(check));

test('any text becomes elements that do nothing', () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const next = random(seed);
    check(Array.from({ length: next(30) }, () => PIECES[next(PIECES.length)]).join(''));
  }
});

test('a text that grows is what the whole text is', () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const next = random(seed);
    const source = Array.from({ length: next(40) }, () => PIECES[next(PIECES.length)]).join('');
    const growing = new Growing();
    for (let end = 0; end < source.length; end += 1 + next(9)) growing.read(source.slice(0, end));
    assert.deepEqual(growing.read(source), new Growing().read(source), `seed ${seed}: ${JSON.stringify(source)}`);
  }
});

test('what is above the last parts of a long text is not read again', () => {
  const growing = new Growing();
  const start = Array.from({ length: 50 }, (_, at) => `Paragraph ${at}.\n\n`).join('');
  const [first] = growing.read(`${start}The end`);
  assert.equal(growing.read(`${start}The end is`)[0], first);
});

test('nesting_ends_at_a_depth_and_the_rest_is_text', () => {
  /** @param {any} tree @returns {number} */
  const depth = (tree) => (Array.isArray(tree) ? Math.max(0, ...tree.map(depth))
    : typeof tree === 'object' && tree && typeof tree.type !== 'function' ? 1 + depth(tree.props.children) : 0);
  for (const source of DEEP) {
    const began = performance.now();
    assert.ok(depth(markdown(source)) < 100, source.slice(0, 40));
    assert.ok(performance.now() - began < 2000, `${source.slice(0, 40)} takes long`);
    check(source);
  }
  assert.ok(read('> '.repeat(600) + 'the end').text.includes('the end'));
});

test('html is text', () => {
  const { text, elements } = read('<img src=x onerror=alert(1)> <b>b</b>\n\n<script>alert(1)</script>');
  assert.ok(text.includes('<img src=x onerror=alert(1)>') && text.includes('<script>'));
  assert.deepEqual([...new Set(elements.map(({ tag }) => tag))], ['p']);
});

test('entities are decoded outside of code', () => {
  assert.equal(read('a &amp; b &lt;i&gt; &#65; `&amp;`').text, 'a & b <i> A &amp;');
  assert.equal(read('&#0; &#x110000; &#xd800; &nothing;').text, '\ufffd \ufffd \ufffd &nothing;');
  assert.equal(read('&#x202e;').text, '<U+202E>', 'also what would turn the direction of writing');
});

test('only addresses of the web and of mail are links', () => {
  for (const href of ['javascript:alert(1)', ' javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'java&#115;cript:alert(1)', 'data:text/html,x',
    'vbscript:x', 'file:///etc/passwd', 'blob:https://x/y', '//evil.example', '/relative', '#hash', '']) {
    assert.ok(!read(`[text](<${href}>)`).elements.some(({ tag }) => tag === 'a'), href);
    if (!href.includes('&')) assert.equal(address(href), undefined);
  }
  const [link] = read('[docs](https://a.example/x)').elements;
  assert.deepEqual([link.props.href, link.text], ['https://a.example/x', 'docs']);
});

test('a_link_says_where_it_leads', () => {
  const said = (/** @type {string} */ source) => read(source).text;
  assert.equal(said('[docs](https://a.example/)'), 'docs');
  assert.equal(said('[good.example](https://evil.example/)'), 'good.example (evil.example)');
  assert.equal(said('[https://good.example](https://evil.example)'), 'https://good.example (evil.example)');
  assert.equal(said('[good.example/login](https://good.example/login)'), 'good.example/login');
  assert.equal(said('<https://a.example/x>'), 'https://a.example/x');
  assert.equal(said('<https://good.example@evil.example/>'), 'https://good.example@evil.example/ (evil.example)');
  assert.equal(said('[https://good.example:x@evil.example/](https://good.example:x@evil.example/)'), 'https://good.example:x@evil.example/ (evil.example)');
  assert.equal(said('<https://g\u043e\u043ed.example/>'), 'https://g\u043e\u043ed.example/ (xn--gd-fmca.example)', 'letters of another script');
  assert.equal(said('<a@b.example>'), 'a@b.example');
  assert.equal(said('[ ](https://evil.example)'), '  (evil.example)', 'a link without words');
  assert.equal(said('![a picture](https://a.example/x.png)'), 'image: a picture (a.example)', 'a picture is not fetched');
});

test('lines of a paragraph stay lines, and nesting is kept', () => {
  assert.ok(read('one\ntwo').elements.some(({ tag }) => tag === 'br'));
  const { elements } = read('- a\n  - b\n    1. c\n\n> q\n> > r\n\n| a | b |\n|--|:-:|\n| 1 | **2** |\n\n- [x] done');
  for (const tag of ['ul', 'ol', 'blockquote', 'table', 'th', 'td', 'strong', 'input']) {
    assert.ok(elements.some((element) => element.tag === tag), tag);
  }
});
