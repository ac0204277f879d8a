// @ts-check
// Texts that want to be more than text.

export const HOSTILE = [
  '<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '<svg/onload=alert(1)>', '<iframe src="javascript:alert(1)">',
  '<a href="javascript:alert(1)">x</a>', '[x](javascript:alert(1))', '[x](java\nscript:alert(1))', '[x](java&#x0A;script:alert(1))',
  '![x](javascript:alert(1))', '![x](https://evil.example/track.png)', '<https://evil.example/"onmouseover="alert(1)>',
  '[a](https://a.example "\\"onmouseover=alert(1)")', '[x]: javascript:alert(1)\n[x]', '[x](data:text/html;base64,PHNjcmlwdD4=)',
  '```"><script>alert(1)</script>\ncode\n```', '`<script>`', '| <script> | b |\n|-|-|\n| <img src=x onerror=1> | 2 |',
  '<style>*{display:none}</style>', '<form action=https://evil.example><input name=x></form>', '<base href=https://evil.example>',
  '<math><mtext></p><script>alert(1)</script>', '<!--><script>alert(1)</script>-->', '<![CDATA[<script>alert(1)</script>]]>',
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>">', '<x onclick=alert(1)>click</x>', '&lt;script&gt;alert(1)&lt;/script&gt;',
  '<details open ontoggle=alert(1)>', 'https://evil.example/<script>', '[\u202egnp.exe](https://a.example)', '\u001b[2J\u0000\u0007\u2028\u2029',
  '<meta http-equiv=refresh content="0;url=https://evil.example">', '__proto__ constructor toString', '# <b>x</b>\n- <script>\n> <script>',
  '[![x](javascript:1)](javascript:2)', '<div style="position:fixed;inset:0">x</div>', '<object data=x>', '<link rel=stylesheet href=//evil.example>',
];

/** Pieces of Markdown that mean something beside each other. */
export const PIECES = [
  'a', 'word ', '日本 ', '\n', '\n\n', '# ', '## ', '- ', '  - ', '1. ', '2) ', '> ', '    ', '\t', '```', '```rust\n', '~~~', '`',
  '*', '**', '_', '~~', '[a](b)', '[a]', '[a]: b\n', '![i](https://j.example)', '<b>', '<!-- ', '-->', '| a | b |\n', '|---|:-:|\n',
  '|', '---', '===', '\r', '\r\n', '&amp;', '\\', 'http://x.example/ ', '<http://y.example>', '\u001b[2J', '\u202e', '\u200b', '  \n',
  '* * *\n', '+ x\n', '[x] ', '<div>\n', '</div>\n\n', '<script>', 'javascript:alert(1)', '](javascript:x)', '[', '&#x202e;',
];

/** Words that every object of JavaScript has, which an agent may say wherever a name is expected. */
export const WORDS = ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty', '__defineGetter__', 'prototype'];

/** Texts that nest deeper than a stack. */
export const DEEP = [
  '> '.repeat(600) + 'x', '- '.repeat(600) + 'x', '1. '.repeat(600) + 'x', '>'.repeat(20_000), '[a'.repeat(600) + '](b)'.repeat(600),
  '*a '.repeat(600) + 'x' + ' a*'.repeat(600), '**a _b '.repeat(300) + 'x' + '_ **'.repeat(300), '~~a '.repeat(600) + '~~'.repeat(600),
  '!['.repeat(600) + '](x)'.repeat(600), Array.from({ length: 600 }, (_, at) => `${'  '.repeat(at)}- x`).join('\n'),
  Array.from({ length: 300 }, (_, at) => `${'> '.repeat(at)}x`).join('\n'),
];
