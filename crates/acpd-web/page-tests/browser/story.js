// @ts-check
// An agent that tells a story, for pictures: how it mends a cookie. `node story.js` speaks ACP on stdin and stdout.

import { createInterface } from 'node:readline';

const BEFORE = `fn cookie(id: &str, cfg: &Config) -> Cookie {
    let mut c = Cookie::new(NAME, id);
    c.set_secure(true);
    c.set_http_only(true);
    c
}
`;
const AFTER = BEFORE.replace('c.set_secure(true);', 'c.set_secure(cfg.tls);\n    c.set_same_site(SameSite::Lax);');
const CLEAN = 'rm -rf build &&\nmake clean &&\ngit push --force origin main';

/** @param {string} text */
const content = (text) => [{ type: 'content', content: { type: 'text', text } }];
/** @param {string} text */
const says = (text) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
/** @param {string} toolCallId @param {string} title @param {string} kind @param {object} [more] */
const call = (toolCallId, title, kind, more) => ({ sessionUpdate: 'tool_call', toolCallId, title, kind, status: 'completed', ...more });

const WORKS = [
  { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'The tests only fail over plain HTTP, so the cookie may be marked secure.' } },
  says("I'll look at how the session cookie is built first."),
  call('r1', 'Read src/auth/cookie.rs', 'read', { locations: [{ path: 'src/auth/cookie.rs', line: 41 }] }),
  call('r2', 'Read tests/login.rs', 'read'),
  call('s1', 'Search for `set_secure`', 'search', { content: content('src/auth/cookie.rs:43') }),
  call('e1', 'Edit cookie.rs', 'edit', { content: [{ type: 'diff', path: 'src/auth/cookie.rs', oldText: BEFORE, newText: AFTER }] }),
  call('x1', 'Run the login tests', 'execute', {
    rawInput: { command: 'cargo test login' }, rawOutput: { exitCode: 0 },
    content: content('running 2 tests\ntest login_http ... ok\ntest login_tls ... ok\n\ntest result: ok. 2 passed; 0 failed'),
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
  { sessionUpdate: 'plan', entries: [
    { content: 'Read the code', status: 'completed', priority: 'medium' }, { content: 'Fix the cookie', status: 'completed', priority: 'medium' },
    { content: 'Publish the branch', status: 'in_progress', priority: 'high' },
  ] },
  { sessionUpdate: 'usage_update', used: 76_000, size: 200_000, cost: { amount: 0.41, currency: 'USD' } },
];
const ASKS = [
  says("The tests pass. I'll clean up and publish the branch."),
  { ...call('a1', 'Clean build', 'execute', { rawInput: { command: CLEAN } }), status: 'pending' },
];
const OPTIONS = [
  { optionId: 'once', name: 'Allow once', kind: 'allow_once' }, { optionId: 'always', name: 'Allow always', kind: 'allow_always' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];
const RUNS = [
  says('Now the whole suite.'),
  { ...call('w1', 'Run the tests', 'execute', { rawInput: { command: 'cargo test -p syntax' }, content: content('test lexer ... ok\ntest parser ... ok') }), status: 'in_progress' },
];

/** @param {object} message */
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }, { id: 'code', name: 'Code' }] };
/** Turns that go on until they are cancelled. @type {Map<string, number>} */
const open = new Map();
let sessions = 0;

/** @param {any} message */
function take({ id, method, params }) {
  /** @param {object} result */
  const answer = (result) => send({ id, result });
  switch (method) {
    case 'initialize': return answer({ protocolVersion: 1, agentCapabilities: { loadSession: true } });
    case 'session/new': return answer({ sessionId: `story-${++sessions}`, modes });
    case 'session/load': return answer({ modes });
    case 'session/prompt': {
      const said = params.prompt.map((/** @type {any} */ part) => part.text ?? '').join(' ');
      const isQuestion = /publish/.test(said);
      const updates = isQuestion ? ASKS : /login/.test(said) ? WORKS : /parser/.test(said) ? RUNS : [says('Done.')];
      for (const update of updates) send({ method: 'session/update', params: { sessionId: params.sessionId, update } });
      if (isQuestion) {
        const toolCall = { toolCallId: 'a1', title: 'Clean build', kind: 'execute', rawInput: { command: CLEAN } };
        send({ id: `ask-${id}`, method: 'session/request_permission', params: { sessionId: params.sessionId, toolCall, options: OPTIONS } });
      }
      if (isQuestion || updates === RUNS) {
        open.set(params.sessionId, id);
        return undefined;
      }
      return answer({ stopReason: 'end_turn' });
    }
    case 'session/cancel': {
      const prompt = open.get(params.sessionId);
      if (prompt !== undefined) send({ id: prompt, result: { stopReason: 'cancelled' } });
      open.delete(params.sessionId);
      return undefined;
    }
    default: if (method && id !== undefined) send({ id, error: { code: -32601, message: 'no such method' } });
  }
  return undefined;
}

createInterface({ input: process.stdin }).on('line', (line) => take(JSON.parse(line))).on('close', () => process.exit(0));
