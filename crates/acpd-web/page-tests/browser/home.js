// @ts-check
// A home for the tests: the real programs, nothing of the user's, and nothing left of it at the end.
//
// `ACPD_BIN` is the folder of `acpd`, `acpctl` and `acpctl-web`.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

/** What is waited for comes in this time, or the test fails. */
export const DEADLINE = 20_000;
const BIN = process.env.ACPD_BIN ?? '';

/** Calls until something is so. @template T @param {string} what @param {() => T | Promise<T>} look
 * @returns {Promise<NonNullable<T>>} */
export async function until(what, look) {
  const end = Date.now() + DEADLINE;
  for (;;) {
    const found = await look();
    if (found) return /** @type {NonNullable<T>} */ (found);
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

export class Home {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), 'acpd-page-'));
    for (const name of ['home', 'run', 'state', 'config', 'work', 'points', 'agents']) {
      mkdirSync(join(this.dir, name));
      chmodSync(join(this.dir, name), 0o700);
    }
    const agent = [join(BIN, 'acpd-scripted-agent'), '--state', this.path('agents/demo')];
    writeFileSync(this.path('config/config.toml'), `default_agent = "demo"
[defaults]
idle_timeout = "0"
restart_delay = "20ms"
restart_max_delay = "100ms"
[agents.demo]
command = ${JSON.stringify(agent)}
env = { ACPD_TEST_POINTS = ${JSON.stringify(this.path('points'))} }
[agents.broken]
command = ["/bin/sh", "-c", "echo no model is configured >&2; exit 1"]
restart = "never"
[agents.story]
command = ${JSON.stringify([process.execPath, fileURLToPath(new URL('story.js', import.meta.url))])}
`);
    /** @type {Record<string, string>} */
    this.env = {
      HOME: this.path('home'), PATH: '/usr/local/bin:/usr/bin:/bin', TZ: 'UTC', COLUMNS: '100',
      ACPD_RUNTIME_DIR: this.path('run'), ACPD_STATE_DIR: this.path('state'), ACPD_CONFIG_DIR: this.path('config'),
      ACPD_EXE: join(BIN, 'acpd'),
    };
    /** @type {import('node:child_process').ChildProcess | undefined} */
    this.web = undefined;
    this.url = '';
  }

  /** @param {string} name */
  path(name) {
    return join(this.dir, name);
  }

  /** Runs `acpctl` to its end; what it printed. @param {string[]} args @returns {Promise<string>} */
  acpctl(...args) {
    const options = { env: this.env, cwd: this.path('work'), timeout: 3 * DEADLINE, maxBuffer: 64 << 20 };
    return new Promise((resolve, reject) => {
      const child = execFile(join(BIN, 'acpctl'), args, options, (error, stdout, stderr) =>
        (error ? reject(new Error(`acpctl ${args.join(' ')}: ${stderr}`)) : resolve(stdout)));
      child.stdin?.end();
    });
  }

  /** Starts `acpctl`, for what happens while it runs. @param {string[]} args */
  start(...args) {
    const child = spawn(join(BIN, 'acpctl'), args, { env: this.env, cwd: this.path('work'), stdio: ['ignore', 'pipe', 'pipe'] });
    const told = { text: '', child };
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => { told.text += data; });
    return told;
  }

  /** Begins a session with a prompt, and returns when it is on disk. @param {string} name @param {string} prompt */
  prompt(name, prompt) {
    return this.acpctl('run', '-d', '-s', name, prompt);
  }

  /** A file of lines that the agent writes, for `[raw …]`. @param {string} name @param {object[]} lines */
  raw(name, lines) {
    writeFileSync(this.path(name), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    return `[raw ${this.path(name)}]`;
  }

  /** Lets the agent go on from `[pause NAME]`. @param {string} name */
  release(name) {
    writeFileSync(this.path(`points/${name}.go`), '');
  }

  /** Starts the server; on the port that it had. */
  async serve() {
    const port = this.url ? new URL(this.url).port : '0';
    const web = this.start('web', '--port', port);
    this.web = web.child;
    const address = await until('the address of the page', () => /(http:\/\/\S+?)\/?#code=([\w-]+)/.exec(web.text)
      ?? (web.child.exitCode === null ? undefined : Promise.reject(new Error(`acpctl web: ${web.text}`))));
    this.url = address[1];
    return address[2];
  }

  /** A code that lets one browser in. @param {string[]} args */
  async code(...args) {
    const said = await this.acpctl('web', 'pair', ...args);
    const code = /#code=([\w-]+)/.exec(said)?.[1];
    if (!code) throw new Error(`acpctl web pair said ${said}`);
    return code;
  }

  async stopServing() {
    const { web } = this;
    this.web = undefined;
    if (!web || web.exitCode !== null) return;
    const ended = new Promise((resolve) => { web.once('exit', resolve); });
    web.kill('SIGINT');
    await ended;
  }

  /** Kills the daemon. */
  async killDaemon() {
    const { daemon } = JSON.parse(await this.acpctl('status', '--json'));
    process.kill(daemon.pid, 'SIGKILL');
    await until('the daemon to be gone', () => {
      try {
        process.kill(daemon.pid, 0);
        return false;
      } catch {
        return true;
      }
    });
  }

  async stop() {
    await this.stopServing();
    await this.acpctl('daemon', 'stop');
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Debian's Chromium, without connections of its own. It scrolls at once: a key within a smooth scroll begins it again. */
export const launch = () => chromium.launch({
  executablePath: process.env.ACPD_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-smooth-scrolling'],
});

/** A browser that has signed in. What goes wrong in the page fails the test.
 * @param {import('playwright-core').Browser} browser @param {Home} home @param {object} [options]
 * @param {string[]} pair what `acpctl web pair` is told */
export async function enter(browser, home, options = {}, ...pair) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  context.setDefaultTimeout(DEADLINE);
  const page = await context.newPage();
  /** @type {string[]} */
  const wrong = [];
  page.on('pageerror', (error) => wrong.push(`${error.message}\n${error.stack}`));
  page.on('console', (message) => {
    // Without a server, a browser complains of each try itself.
    const isExpected = /ERR_CONNECTION_REFUSED|ERR_INTERNET_DISCONNECTED|WebSocket connection to|status of 401/.test(message.text());
    if (message.type() === 'error' && !isExpected) wrong.push(message.text());
  });
  await page.goto(`${home.url}/#code=${await home.code(...pair)}`);
  await page.waitForSelector('.connection:has-text("live")');
  return { page, context, wrong };
}

/** @param {import('playwright-core').Page} page @param {string} name */
export async function openSession(page, name) {
  await page.click(`a.entry:has(.name:text-is("${name}"))`);
  await page.waitForSelector(`.session-head h1:text-is("${name}")`);
}

/** Goes up to the first block. @param {import('playwright-core').Page} page */
export async function climb(page) {
  const look = () => page.evaluate(() => {
    const box = document.querySelector('.scroller');
    const rows = [...document.querySelectorAll('.row')].map((it) => it.getAttribute('aria-posinset'));
    const place = [box?.scrollTop, box?.clientHeight, box?.scrollHeight];
    const told = [...document.querySelectorAll('.older, .empty, .connection, .away')].map((it) => it.textContent);
    return { place, rows: [rows[0], rows.at(-1)], told, focus: document.activeElement?.className, isOlder: !!document.querySelector('.older') };
  });
  // Twice: what is older may be about to come.
  for (let [tries, seen] = [0, 0]; seen < 2; tries++) {
    await page.locator('.scroller').press('Home');
    await page.waitForTimeout(50);
    const { place, rows, isOlder, ...more } = await look();
    assert.ok(tries < 400, `the beginning is not reached: ${JSON.stringify({ place, rows, ...more })}`);
    seen = place[0] === 0 && rows[0] === '1' && !isOlder ? seen + 1 : 0;
  }
}

/** The text of the stream. @param {import('playwright-core').Page} page */
export const streamOf = (page) => page.locator('.rows').innerText();

/** An update of the agent. @param {object} update */
export const update = (update) => ({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: '$SESSION', update } });

/** @param {string} text */
export const says = (text) => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
