// @ts-check
// What a browser is sent: nothing is missing, and nothing is in it that the policy of the page refuses.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const page = new URL('../../page/', import.meta.url);
const files = readdirSync(page, { recursive: true, withFileTypes: true }).filter((it) => it.isFile())
  .map((it) => `${it.parentPath}/${it.name}`.slice(page.pathname.length).replace(/^\//, ''));
/** @param {string} name */
const read = (name) => readFileSync(new URL(name, page), 'utf8');
const modules = files.filter((name) => name.endsWith('.js'));

/** What a module needs before it runs, and what that needs. @param {string} name @param {Set<string>} found */
function needs(name, found = new Set()) {
  for (const [, from] of read(name).matchAll(/^(?:import|export)\b[^;'"]*\bfrom\s*["'](\.[^"']+)["']/gm)) {
    const path = new URL(from, new URL(name, page)).pathname.slice(page.pathname.length);
    if (!found.has(path)) needs(path, found.add(path));
  }
  return found;
}

test('what the page opens with is fetched at once, and the rest comes when it is needed', () => {
  const named = [...read('index.html').matchAll(/rel="modulepreload" href="\/([^"]+)"/g)].map(([, name]) => name);
  assert.deepEqual(named, [...needs('main.js')].sort());
  for (const name of ['session.js', 'ui/conversation.js', 'lib/marked.js']) assert.ok(!named.includes(name), name);
});

test('every import leads to a file', () => {
  for (const name of modules) {
    for (const [, from] of read(name).matchAll(/(?:\bfrom\s*|\bimport\s*)["'](\.[^"']+)["']/g)) {
      const found = new URL(from, new URL(name, page)).pathname.slice(page.pathname.length);
      assert.ok(files.includes(found), `${name} imports ${from}`);
    }
    const bare = /^(?:import|export)\b[^;'"]*\bfrom\s*["'][^."']/m;
    assert.doesNotMatch(read(name), bare, `${name} imports a bare name`);
  }
});

test('nothing of ours makes HTML of text, and nothing is inline', () => {
  for (const name of modules.filter((it) => !it.startsWith('lib/'))) {
    const code = read(name).replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');
    assert.doesNotMatch(code, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc/, name);
  }
  const shell = read('index.html');
  assert.doesNotMatch(shell, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|https?:/);
});
