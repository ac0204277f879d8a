// @ts-check
// A story for pictures: what an agent says and does when it mends a cookie.

import { says, update } from './home.js';

/** @param {string} text */
const text = (text) => [{ type: 'content', content: { type: 'text', text } }];
/** @param {string} id @param {string} title @param {string} kind @param {object} [more] */
const call = (id, title, kind, more) => update({ sessionUpdate: 'tool_call', toolCallId: id, title, kind, status: 'completed', ...more });

const BEFORE = `fn cookie(id: &str, cfg: &Config) -> Cookie {
    let mut c = Cookie::new(NAME, id);
    c.set_secure(true);
    c.set_http_only(true);
    c
}
`;
const AFTER = BEFORE.replace('c.set_secure(true);', 'c.set_secure(cfg.tls);\n    c.set_same_site(SameSite::Lax);');
const CLEAN = 'rm -rf build &&\nmake clean &&\ngit push --force origin main';

export const WORKS = [
  update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'The tests only fail over plain HTTP, so the cookie may be marked secure.' } }),
  says("I'll look at how the session cookie is built first."),
  call('r1', 'Read src/auth/cookie.rs', 'read', { locations: [{ path: 'src/auth/cookie.rs', line: 41 }] }),
  call('r2', 'Read tests/login.rs', 'read'),
  call('s1', 'Search for `set_secure`', 'search', { content: text('src/auth/cookie.rs:43') }),
  call('e1', 'Edit cookie.rs', 'edit', { content: [{ type: 'diff', path: 'src/auth/cookie.rs', oldText: BEFORE, newText: AFTER }] }),
  call('x1', 'Run the login tests', 'execute', {
    rawInput: { command: 'cargo test login' }, rawOutput: { exitCode: 0 },
    content: text('running 2 tests\ntest login_http ... ok\ntest login_tls ... ok\n\ntest result: ok. 2 passed; 0 failed'),
  }),
  says(`The cookie was always marked **secure**, so plain-HTTP tests never sent it. Two changes:

1. \`set_secure\` follows the configuration now
2. the test in \`tests/login.rs\` covers both

\`\`\`rust
fn cookie(id: &str, cfg: &Config) -> Cookie {
    let mut c = Cookie::new(NAME, id);
    c.set_secure(cfg.tls); // was: true
    c
}
\`\`\`

| file | lines | what |
|:-----|------:|------|
| src/auth/cookie.rs | 2 | builds the cookie |
| tests/login.rs | 14 | tries both |

> The flag only matters over TLS: see [the documentation](https://example.org/cookies).

- [x] fixed
- [ ] published
`),
  update({ sessionUpdate: 'plan', entries: [
    { content: 'Read the code', status: 'completed', priority: 'medium' }, { content: 'Fix the cookie', status: 'completed', priority: 'medium' },
    { content: 'Publish the branch', status: 'in_progress', priority: 'high' },
  ] }),
];

export const ASKS = [
  says("The tests pass. I'll clean up and publish the branch."),
  update({ sessionUpdate: 'tool_call', toolCallId: 'a1', title: 'Clean build', kind: 'execute', status: 'pending', rawInput: { command: CLEAN } }),
  { jsonrpc: '2.0', id: 990, method: 'session/request_permission', params: {
    sessionId: '$SESSION', toolCall: { toolCallId: 'a1', title: 'Clean build', kind: 'execute', rawInput: { command: CLEAN } },
    options: [
      { optionId: 'once', name: 'Allow once', kind: 'allow_once' }, { optionId: 'always', name: 'Allow always', kind: 'allow_always' },
      { optionId: 'no', name: 'Reject', kind: 'reject_once' },
    ],
  } },
];
