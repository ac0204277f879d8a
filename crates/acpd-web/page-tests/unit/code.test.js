// @ts-check
// Code with colours has every character of the code.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LANGUAGES, coloured, shown } from '../../page/ui/code.js';
import { random } from './random.js';

/** @param {any} parts @returns {string} */
const textIn = (parts) =>
  Array.isArray(parts) ? parts.map(textIn).join('') : typeof parts === 'object' && parts ? textIn(parts.props.children) : String(parts ?? '');

/** @param {any} parts @returns {number} */
const colours = (parts) => (Array.isArray(parts) ? parts.filter((it) => typeof it === 'object').length : 0);

/** @type {Record<string, string>} */
const EXAMPLES = {
  rust: 'fn main() {\n    println!("x {}", r#"raw"#); // end\n    let c = \'a\';\n}\n#[derive(Debug)]\nstruct S<\'a>(&\'a str);\n',
  python: '@decorator\nasync def f(a: int = 1) -> str:\n    """doc"""\n    return f"{a!r} {a:>{3}}" + \'x\'\nclass C(Base):\n    pass\n',
  bash: '#!/bin/bash\nfor i in "$@"; do echo "${i%.*} $(date +"%s")" \'x\' >&2; done\ncat <<EOF\n$x "y"\nEOF\nf() { :; }\n',
  go: 'package main\nfunc (s *S) F(a, b int) (string, error) { return `raw`, fmt.Errorf("x %d", \'a\') }\n',
  json: '{"a": [1, -2.5e3, true, null], "b\\"c": {"d": "e"}} // no\n',
  yaml: 'a: "x"\nb:\n  - \'y\'\n  - |\n    text\nc: &anchor {d: !!str 1}\n# end\n---\n',
  diff: '--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-old "x"\n+new\n same\nIndex: x\n',
  typescript: 'class A<T extends B> { @dec() private x: string = `a ${b + `c ${d}`} e`; }\nconst f = async (a?: number) => <div a="b">{a}</div>;\nhtml`<b>${"x"}</b>`;\n/** @param {x} y */ let r = /a[/]b/g;\n',
};

test('coloured_code_is_the_whole_code', async () => {
  for (const language of LANGUAGES) {
    const text = EXAMPLES[language];
    const parts = await coloured(text, language);
    assert.equal(textIn(parts), shown(text), language);
    assert.ok(colours(parts) > 2, `${language} has colours`);
  }
});

test('any_code_is_shown_whole_or_without_colours', async () => {
  const pieces = Object.values(EXAMPLES).flatMap((it) => it.match(/\w+|\s+|[^\w\s]/g) ?? []);
  pieces.push('"', "'", '`', '"""', '/*', '*/', '${', '}', '\\', '\n', '<U+202E>', '\u202e', '\u0000', '日本', '😀', '\ufe0f', '<<EOF\n', 'r#"');
  let kept = 0;
  for (let seed = 1; seed <= 1500; seed++) {
    const next = random(seed);
    const language = LANGUAGES[next(LANGUAGES.length)];
    const text = Array.from({ length: next(60) }, () => pieces[next(pieces.length)]).join('');
    // What would change the text is refused, and the page then shows it without colours.
    const parts = await coloured(text, language).catch(() => undefined);
    if (!parts) continue;
    kept++;
    assert.equal(textIn(parts), shown(text), `${language}: ${JSON.stringify(text)}`);
  }
  assert.ok(kept > 1350, `${kept} of 1500 have colours`);
});
