// @ts-check
// The page in a real browser, with the real server, daemon and scripted agent.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { Home, climb, enter, launch, openSession, says, streamOf, until, update } from './home.js';

/** A picture. */
const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const home = new Home();
/** @type {import('playwright-core').Browser} */
let browser;

before(async () => {
  [browser] = await Promise.all([launch(), home.serve()]);
});

after(async () => {
  await browser?.close();
  await home.stop();
});

/** @param {string} name @param {any} options @param {() => Promise<void>} [run] */
const scene = (name, options, run = options) => test(name, { timeout: 120_000, ...(run !== options && options) }, run);

scene('a code lets one browser in, once, and does not stay in its history', async () => {
  const { page, context, wrong } = await enter(browser, home);
  assert.equal(new URL(page.url()).hash, '');
  await page.reload();
  await page.waitForSelector('.connection:has-text("live")');
  const code = await home.code();
  const [first, second] = [await browser.newContext(), await browser.newContext()];
  const [one, two] = [await first.newPage(), await second.newPage()];
  await one.goto(`${home.url}/#code=${code}`);
  await one.waitForSelector('.inbox');
  await two.goto(`${home.url}/#code=${code}`);
  // Why and what to do are one below the other.
  const boxes = await Promise.all(['strong', '.hint'].map((it) => two.locator(`.door .trouble ${it}`).boundingBox()));
  assert.ok(boxes[0] && boxes[1] && boxes[1].y >= boxes[0].y + boxes[0].height);
  await page.goto(`${home.url}/#/help`);
  await page.click('text=Sign out');
  await page.waitForSelector('.door');
  await page.reload();
  await page.waitForSelector('.door');
  assert.deepEqual(wrong, []);
  await Promise.all([first.close(), second.close(), context.close()]);
});

scene('two browsers and a terminal show the same, whoever says something', async () => {
  await home.acpctl('run', '-s', 'shared', 'say #one');
  const terminal = home.start('attach', 'shared');
  const [a, b] = [await enter(browser, home), await enter(browser, home)];
  await openSession(a.page, 'shared');
  await openSession(b.page, 'shared');
  await a.page.fill('#prompt', 'say #two');
  await a.page.press('#prompt', 'Enter');
  for (const { page } of [a, b]) await page.waitForSelector('.answer:has-text("say #two")');
  await until('the terminal to show it', () => terminal.text.includes('#two'));
  await home.acpctl('run', '-s', 'shared', 'say #three');
  for (const { page } of [a, b]) await page.waitForSelector('.answer:has-text("say #three")');
  const [one, two] = [await streamOf(a.page), await streamOf(b.page)];
  assert.equal(one, two);
  for (const said of ['say #one', 'say #two', 'say #three']) assert.equal(one.split(`\n`).filter((line) => line === said).length, 1, `${said} once in ${one}`);
  assert.equal(await a.page.inputValue('#prompt'), '');
  assert.deepEqual([...a.wrong, ...b.wrong], []);
  terminal.child.kill('SIGKILL');
  await Promise.all([a.context.close(), b.context.close()]);
});

scene('a killed daemon loses and doubles nothing', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.prompt('killed', '[number 300 n 10000]');
  await openSession(page, 'killed');
  await page.waitForSelector('.answer:has-text("n/20")');
  await home.killDaemon();
  await home.acpctl('status');
  await page.waitForSelector('.turn:has-text("done")');
  const said = await page.locator('.answer').allInnerTexts();
  const numbers = said.join('').match(/n\/\d+/g) ?? [];
  assert.deepEqual(numbers, Array.from({ length: 300 }, (_, at) => `n/${at + 1}`));
  await climb(page);
  assert.equal(await page.locator('.prompt').count(), 1);
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a killed agent is told, and needs somebody', async () => {
  const { page, context } = await enter(browser, home);
  await home.prompt('nightly', '[slow 600]');
  await openSession(page, 'nightly');
  await page.waitForSelector('.answer:has-text("tick 3")');
  const { pid } = JSON.parse(await home.acpctl('agent', 'show', 'demo', '--json'));
  process.kill(pid, 'SIGKILL');
  await page.waitForSelector('.turn.is-interrupted');
  await page.waitForSelector('.is-needs .entry:has(.name:text-is("nightly")) .is-interrupted');
  // The title follows what is drawn.
  await until('the title to tell it', async () => /^\(\d+\) /.test(await page.title()));
  await context.close();
});

scene('a question is answered in one browser and gone in the other', async () => {
  const [a, b] = [await enter(browser, home), await enter(browser, home)];
  await home.prompt('asked', '[ask]');
  await a.page.waitForSelector('.is-needs .entry:has(.name:text-is("asked"))');
  for (const { page } of [a, b]) {
    await openSession(page, 'asked');
    await page.waitForSelector('.question');
    await page.waitForSelector('.call .line:has-text("waiting for you")');
  }
  const confirm = a.page.locator('.question .confirm');
  assert.equal(await a.page.locator('.question input:checked').count(), 0, 'nothing is chosen beforehand');
  assert.equal(await confirm.getAttribute('aria-disabled'), 'true');
  await a.page.check('.question .allows input >> nth=0');
  await a.page.waitForSelector('.question .confirm[aria-disabled="false"]');
  await confirm.click();
  await b.page.waitForSelector('.question', { state: 'detached' });
  await b.page.waitForSelector('.question-over:has-text("by")');
  for (const { page } of [a, b]) await page.waitForSelector('.said-line:has-text("by")');
  // It is one sentence, however many colours are in it.
  assert.equal(await a.page.locator('.said-line').evaluate((it) => it.childNodes.length), 2);
  assert.deepEqual([...a.wrong, ...b.wrong], []);
  await Promise.all([a.context.close(), b.context.close()]);
});

scene('a key confirms twice, and a press that comes too soon does nothing', async () => {
  const { page, context } = await enter(browser, home);
  await home.prompt('keyed', '[ask]');
  await openSession(page, 'keyed');
  await page.waitForSelector('.question');
  const chosen = page.locator('.question .allows input').first();
  await chosen.focus();
  await page.keyboard.press('Space');
  await page.locator('.question .confirm').focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.question').count(), 1, 'it is still arming, or asks again');
  await page.waitForSelector('.question .confirm[aria-disabled="false"]');
  if (!(await page.locator('.question .confirm').innerText()).includes('Once more')) await page.keyboard.press('Enter');
  await page.waitForSelector('.question .confirm[aria-disabled="false"]:has-text("Once more")');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.question', { state: 'detached' });
  await context.close();
});

scene('on a phone an answer that allows is held, and nothing is wider than the screen', async () => {
  const { page, context, wrong } = await enter(browser, home, {
    viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2,
  });
  await home.prompt('phone', '[ask]');
  await openSession(page, 'phone');
  // Where the space is, without a step.
  const card = await page.locator('.question').boundingBox();
  assert.ok(card && card.height > 200 && card.width > 300, JSON.stringify(card));
  // The button in the head says the beginning of its words, and that there are more.
  const label = page.locator('.options-button .label');
  assert.equal(await label.evaluate((it) => getComputedStyle(it).textOverflow), 'ellipsis');
  const [button, words] = [await page.locator('.options-button').boundingBox(), await label.boundingBox()];
  assert.ok(button && words && words.x >= button.x + 4 && words.x + words.width <= button.x + button.width, JSON.stringify([button, words]));
  await page.tap('.question .allows >> nth=0');
  await page.waitForSelector('.question .confirm[aria-disabled="false"]');
  const confirm = page.locator('.question .confirm');
  assert.match(await confirm.innerText(), /^Hold to /);
  await confirm.tap();
  assert.equal(await page.locator('.question').count(), 1, 'a tap is not enough');
  const box = await confirm.boundingBox();
  assert.ok(box && box.height >= 44);
  const touch = { pointerType: 'touch', isPrimary: true, bubbles: true };
  await confirm.dispatchEvent('pointerdown', touch);
  await page.waitForSelector('.confirm.is-held');
  await page.waitForSelector('.question', { state: 'detached' });
  for (const view of ['', '#/new', '#/search', '#/help']) {
    await page.goto(`${home.url}/${view}`);
    await page.waitForSelector(view ? '.dialog' : '.inbox');
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${view} is ${width} wide`);
    const small = await page.evaluate(() => [...document.querySelectorAll('button, a.entry, a.button, select, input')]
      .filter((it) => it.checkVisibility() && !it.closest('.unseen') && !(/** @type {any} */ (it)).matches('[type=checkbox], [type=radio], .unseen'))
      .filter((it) => it.getBoundingClientRect().height < 43.5).map((it) => it.outerHTML.slice(0, 120)));
    assert.deepEqual(small, [], 'a finger hits what it means');
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('offline and back', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.acpctl('run', '-s', 'offline', 'say #before');
  await openSession(page, 'offline');
  await page.waitForSelector('.answer:has-text("#before")');
  await page.evaluate(() => { Object.assign(window, { isSame: true }); });
  await home.stopServing();
  await page.waitForSelector('.connection.is-away');
  await page.waitForSelector('.away');
  await page.fill('#prompt', 'a draft that stays');
  await home.acpctl('run', '-s', 'offline', 'say #meanwhile');
  await home.serve();
  await page.waitForSelector('.answer:has-text("#meanwhile")');
  await page.waitForSelector('.connection:not(.is-away)');
  const text = await streamOf(page);
  assert.equal(text.split('\n').filter((line) => line === 'say #before').length, 1);
  assert.equal(await page.inputValue('#prompt'), 'a draft that stays');
  assert.equal(await page.evaluate(() => 'isSame' in window), true, 'the page was not loaded anew');
  await page.reload();
  await page.waitForSelector('.answer:has-text("#meanwhile")');
  assert.equal(await page.inputValue('#prompt'), 'a draft that stays');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('without a connection the page opens, and shows what it knew last', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.acpctl('run', '-s', 'remembered', 'say #remembered');
  await page.waitForSelector('.entry:has(.name:text-is("remembered"))');
  await page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    while (!navigator.serviceWorker.controller) await new Promise((resolve) => { setTimeout(resolve, 20); });
  });
  await home.stopServing();
  await page.reload();
  await page.waitForSelector('.connection.is-away:has-text("this is what was known")');
  await openSession(page, 'remembered');
  await page.waitForSelector('.empty:has-text("No connection")');
  // Also what was never opened is there.
  await page.goto(`${home.url}/#/search`);
  await page.waitForSelector('.dialog input');
  await page.evaluate(() => localStorage.removeItem('acpd.known'));
  const other = await context.newPage();
  await other.goto(`${home.url}/`);
  await other.waitForSelector('.empty:has-text("nothing is known in this browser yet")');
  await page.goto(`${home.url}/#/`);
  await openSession(page, 'remembered');
  await home.serve();
  await page.waitForSelector('.answer:has-text("#remembered")');
  await page.waitForSelector('.connection:has-text("live")');
  const probe = await context.newCDPSession(page);
  const { installabilityErrors } = await probe.send('Page.getInstallabilityErrors');
  const others = installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito');
  assert.deepEqual(others, [], 'a phone can install it');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a newer version is told, and a running page gets no file of it', async () => {
  const { page, context, wrong } = await enter(browser, home, { serviceWorkers: 'block' });
  await context.route('**/me', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...await answer.json(), page: 'v-abcdef' } });
  });
  // The server was replaced: it has no file of this version.
  await context.route('**/v-*/**', (route) => route.fulfill({ status: 404, body: '{}' }));
  await home.stopServing();
  await page.waitForSelector('.connection.is-away');
  await home.serve();
  await page.waitForSelector('.newer');
  await page.waitForSelector('.connection:has-text("live")');
  await page.goto(`${home.url}/#/search`);
  await page.waitForSelector('.trouble:has-text("not in this browser")');
  await page.goto(`${home.url}/#/`);
  await page.waitForSelector('.entry');
  await context.unroute('**/v-*/**');
  await context.unroute('**/me');
  await page.click('.newer button');
  await page.waitForSelector('.newer', { state: 'detached' });
  await page.waitForSelector('.entry');
  assert.deepEqual(wrong.filter((it) => !it.includes('status of 404')), []);
  await context.close();
});

scene('a backup that takes the place of the journal is what the page shows then', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.acpctl('run', '-s', 'kept', 'say #one');
  await home.acpctl('backup', home.path('backup'));
  await home.acpctl('run', '-s', 'kept', 'say #two');
  await home.acpctl('run', '-s', 'later', 'say #three');
  await openSession(page, 'later');
  await page.waitForSelector('.answer:has-text("#three")');
  await openSession(page, 'kept');
  await page.waitForSelector('.answer:has-text("#two")');
  await page.evaluate(() => { Object.assign(window, { isSame: true }); });
  await page.fill('#prompt', 'a draft that stays');
  // The page is away until the numbers have gone on: they are those of other lines.
  await home.stopServing();
  await page.waitForSelector('.connection.is-away');
  await home.acpctl('restore', home.path('backup'), '--yes', '--force');
  await home.acpctl('run', '-s', 'kept', 'say #four and more');
  await home.serve();
  await page.waitForSelector('.answer:has-text("#four")');
  await page.waitForSelector('.entry:has(.name:text-is("later"))', { state: 'detached' });
  assert.equal((await streamOf(page)).includes('#two'), false, 'it was never said in this journal');
  assert.equal(await page.locator('.prompt').count(), 2);
  assert.equal(await page.inputValue('#prompt'), 'a draft that stays');
  assert.equal(await page.evaluate(() => 'isSame' in window), true);
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a session that was deleted is open again when it comes back', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.acpctl('run', '-s', 'undone', 'say #undone');
  await openSession(page, 'undone');
  await page.waitForSelector('.answer:has-text("#undone")');
  await home.acpctl('session', 'rm', '--yes', 'undone');
  await page.waitForSelector('.trouble:has-text("was deleted")');
  await page.waitForSelector('.entry:has(.name:text-is("undone"))', { state: 'detached' });
  await home.acpctl('session', 'undo');
  await page.waitForSelector('.entry:has(.name:text-is("undone"))');
  await page.goto(`${home.url}/#/`);
  await openSession(page, 'undone');
  await page.waitForSelector('.answer:has-text("#undone")');
  await page.waitForSelector('#prompt:enabled');
  await page.waitForSelector('.conversation .trouble', { state: 'detached' });
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('with keys alone a session is begun, left and found, and what was found is not folded away', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const { keyboard } = page;
  const focus = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.className);
  await keyboard.press('n');
  await page.waitForSelector('#new-agent:focus');
  await keyboard.press('Tab');
  assert.equal(await focus(), 'new-cwd');
  await keyboard.type(home.path('work'));
  await keyboard.press('Tab');
  await keyboard.type('by keys');
  for (let at = 0; at < 2; at++) await keyboard.press('Tab');
  assert.equal(await focus(), 'new-text');
  await keyboard.type('[tool Edit one] [tool Edit needlekey]');
  for (let at = 0; at < 2; at++) await keyboard.press('Tab');
  await keyboard.press('Enter');
  await page.waitForSelector('.session-head h1:text-is("by keys")');
  await page.waitForSelector('.turn:has-text("done")');
  const session = page.url();
  await keyboard.press('?');
  await page.waitForSelector('.keys');
  await keyboard.press('Escape');
  await page.waitForSelector('.keys', { state: 'detached' });
  assert.equal(page.url(), session, 'back where one was');
  await keyboard.press('/');
  await page.waitForSelector('.dialog input:focus');
  await keyboard.type('needlekey');
  await page.waitForSelector('.hits a:has(.who:has-text("demo"))');
  await page.focus('.hits li:last-child a');
  const hits = await page.locator('.hits li').count();
  for (let at = 0; at < hits && !(await page.locator('.hits a:focus .who').innerText()).startsWith('tool'); at++) await keyboard.press('Shift+Tab');
  await keyboard.press('Enter');
  await page.waitForSelector('.row.is-chosen .call .diff');
  await keyboard.press('g');
  await keyboard.press('i');
  await page.waitForSelector('.side a.entry:focus');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('what is sent without a connection stays in the field, also if the page is closed', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.acpctl('run', '-s', 'unsent', 'say #before');
  await openSession(page, 'unsent');
  await page.waitForSelector('.answer:has-text("#before")');
  await home.stopServing();
  await page.waitForSelector('.connection.is-away');
  await page.fill('#prompt', 'say #unsent');
  await page.press('#prompt', 'Enter');
  await page.waitForSelector('.dock .trouble:has-text("acpd is not connected")');
  assert.equal(await page.inputValue('#prompt'), 'say #unsent');
  await home.serve();
  await page.waitForSelector('.connection:not(.is-away)');
  await page.reload();
  await page.waitForSelector('.answer:has-text("#before")');
  assert.equal(await page.inputValue('#prompt'), 'say #unsent');
  await page.press('#prompt', 'Enter');
  await page.waitForSelector('.answer:has-text("#unsent")');
  assert.equal(await page.locator('.prompt:has-text("#unsent")').count(), 1);
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('files go with a prompt, and with the first one', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const file = (/** @type {string} */ name, /** @type {string} */ mimeType, /** @type {Buffer} */ buffer) => ({ name, mimeType, buffer });
  const notes = file('notes.txt', 'text/plain', Buffer.from('remember the milk\n```\nand the fence\n'));
  const picture = file('dot.png', 'image/png', Buffer.from(DOT, 'base64'));
  await home.acpctl('run', '-s', 'attached', 'say #before');
  await openSession(page, 'attached');
  // Whether the agent takes images is known with the connection.
  await page.waitForSelector('.answer:has-text("#before")');
  await page.setInputFiles('.attach input', [notes, picture, file('said.ogg', 'audio/ogg', Buffer.from('OggS')), file('program', '', Buffer.from([0xff, 0xfe, 0x00]))]);
  await page.waitForSelector('.dock .trouble:has-text("said.ogg: this agent takes no audio")');
  await page.click('.dock .trouble button');
  await page.setInputFiles('.attach input', file('other.txt', 'text/plain', Buffer.from('not this')));
  await page.click('.chip:has-text("other.txt") button');
  assert.deepEqual((await page.locator('.chip').allInnerTexts()).map((it) => it.split(/\s/)[0]), ['notes.txt', 'dot.png', 'program']);
  await page.fill('#prompt', 'say #with');
  await page.click('button:text-is("Send")');
  await page.waitForSelector('.answer:has-text("#with")');
  const said = page.locator('.prompt:has-text("#with")');
  assert.match(await said.innerText(), /notes\.txt:\s+````\s+remember the milk\s+```\s+and the fence\s+````/);
  await said.locator('img.picture').waitFor();
  await said.locator(':text("[untitled:program]")').waitFor();
  await page.waitForSelector('.chip', { state: 'detached' });

  await page.goto(`${home.url}/#/new`);
  await page.fill('#new-cwd', home.path('work'));
  await page.fill('#new-name', 'begun with a file');
  await page.fill('#new-text', 'say #begun');
  await page.setInputFiles('.form .attach input', notes);
  await page.waitForSelector('.form .chip');
  await page.click('button:text-is("Begin")');
  await page.waitForSelector('.answer:has-text("#begun")');
  assert.match(await page.locator('.prompt').innerText(), /remember the milk/);
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('who goes up stays there while more comes, also if that is a few lines', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.acpctl('run', '-s', 'short', `say #short ${'words '.repeat(900)}`);
  await openSession(page, 'short');
  await page.waitForSelector('.turn:has-text("done")');
  const range = () => page.evaluate(() => {
    const box = document.querySelector('.scroller');
    return box ? box.scrollHeight - box.clientHeight : 0;
  });
  await until('it to be drawn', async () => await range() > 100);
  const { height } = page.viewportSize() ?? { height: 0 };
  await page.setViewportSize({ width: 1280, height: height + await range() - 24 });
  await until('it to be drawn anew', async () => await range() === 24);
  await climb(page);
  // What is drawn anew, long after the key, moves nothing.
  await page.waitForTimeout(1000);
  await home.acpctl('session', 'rename', 'short', 'shorter');
  await page.waitForSelector('.session-head h1:text-is("shorter")');
  assert.equal(await page.evaluate(() => document.querySelector('.scroller')?.scrollTop), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('keys at the top leave the end of a conversation that grows', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.acpctl('run', '-s', 'growing', 'say #one');
  await openSession(page, 'growing');
  await page.waitForSelector('.turn:has-text("done")');
  const more = home.acpctl('run', '-s', 'growing', `say #two ${'words '.repeat(3000)}`);
  const grown = () => page.evaluate(() => {
    const box = document.querySelector('.scroller');
    return !!box && box.scrollHeight - box.clientHeight > 500;
  });
  while (!await grown()) await page.locator('.scroller').press('Home');
  await climb(page);
  await more;
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('commands of the agent are listed and completed', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.prompt('commands', 'say #first');
  await openSession(page, 'commands');
  await page.click('#prompt');
  await page.keyboard.type('/');
  await page.waitForSelector('.commands li >> nth=1');
  const names = await page.locator('.commands .is-name').allInnerTexts();
  assert.equal(await page.locator('.commands [aria-selected="true"] .is-name').innerText(), names[0]);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  assert.equal(await page.inputValue('#prompt'), `${names[1]} `);
  await page.waitForSelector('.commands', { state: 'detached' });
  assert.equal(await page.locator('.prompt').count(), 1, 'nothing was sent');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a hit of the search is marked in the line where it is', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const text = [...Array(300).keys()].map((at) => (at === 150 ? 'the haystackneedle' : `paragraph ${at}`)).join('\n\n');
  await home.acpctl('run', '-s', 'long answer', home.raw('haystack', [says(text)]));
  await page.goto(`${home.url}/#/search`);
  await page.fill('.dialog input', 'haystackneedle');
  await page.click('.hits a:has(.who:has-text("agent"))');
  const place = () => page.evaluate(() => {
    const range = [...(CSS.highlights.get('hit') ?? [])][0];
    const box = document.querySelector('.scroller')?.getBoundingClientRect();
    const rect = range instanceof Range ? range.getBoundingClientRect() : undefined;
    return rect && box && { text: range.toString(), isSeen: rect.top >= box.top && rect.bottom <= box.bottom };
  });
  await until('the hit to be marked', async () => (await place())?.isSeen);
  assert.equal((await place())?.text, 'haystackneedle');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a call that gives work to another agent shows that work', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const call = { toolCallId: 'd', title: 'mcp__acpd__prompt', kind: 'other', rawInput: { session_name: 'helper', agent: 'demo', prompt: 'look at it' } };
  await home.prompt('helper', `${home.raw('half', [says('half of it')])} [pause helper] ${home.raw('whole', [says(', all of it')])}`);
  await home.prompt('boss', `${home.raw('begun', [update({ sessionUpdate: 'tool_call', status: 'in_progress', ...call })])} [pause boss] ${
    home.raw('over', [update({ sessionUpdate: 'tool_call_update', toolCallId: 'd', status: 'completed',
      content: [{ type: 'content', content: { type: 'text', text: 'the work is done' } }] })])}`);
  await openSession(page, 'boss');
  await page.waitForSelector('.call .line:has-text("demo [helper]")');
  await page.waitForSelector('.child .words:has-text("half of it")');
  home.release('helper');
  await page.waitForSelector('.child .words:has-text(", all of it")');
  home.release('boss');
  await page.waitForSelector('.child', { state: 'detached' });
  await page.click('.call .head:has-text("demo [helper]")');
  await page.waitForSelector('.call .output:has-text("the work is done")');
  await page.click('.child a');
  await page.waitForSelector('.session-head h1:text-is("helper")');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a running turn is steered', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.prompt('steered', 'go #on [pause middle]');
  await openSession(page, 'steered');
  await page.waitForSelector('.stop');
  await page.fill('#prompt', 'take the left one');
  await page.click('button:text-is("Steer")');
  await page.waitForSelector('.answer:has-text("heard: take the left one")');
  await page.waitForSelector('.prompt:has(.tag:text-is("steered")):has-text("take the left one")');
  // Its line may be here before the answer to it.
  await until('the field to be empty', async () => await page.inputValue('#prompt') === '');
  assert.equal(await page.locator('.queue .waiting').count(), 0);
  home.release('middle');
  await page.waitForSelector('.turn:has-text("done")');
  // Without a turn it is a prompt like any other.
  await page.waitForSelector('button:text-is("Steer")', { state: 'detached' });
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a browser is told when its person is needed', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await context.grantPermissions(['notifications']);
  // No push service is asked here; what comes from one, the browser is given.
  await context.addInitScript(() => {
    const made = { endpoint: 'https://push.example/1', unsubscribe: async () => true, toJSON: () => ({ endpoint: 'https://push.example/1', keys: { p256dh: 'x', auth: 'y' } }) };
    /** @type {any} */
    let current = null;
    Object.assign(PushManager.prototype, {
      getSubscription: async () => current,
      subscribe: async (/** @type {any} */ { applicationServerKey }) => {
        if (applicationServerKey !== 'KEY') throw new Error('another key');
        current = made;
        return made;
      },
    });
  });
  await page.goto(`${home.url}/#/help`);
  await page.waitForSelector('.field:has(#push) :text("This needs TLS")');
  /** @type {string[]} */
  const asked = [];
  await page.route('**/push', (route) => {
    asked.push(`${route.request().method()} ${route.request().postData() ?? ''}`);
    return route.request().method() === 'GET' ? route.fulfill({ json: { key: 'KEY' } }) : route.fulfill({ status: 204 });
  });
  await page.route('**/me', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...await answer.json(), push: true } });
  });
  await page.reload();
  await page.waitForSelector('.connection:has-text("live")');
  await page.check('#push:enabled');
  await until('it to be on', () => asked.some((it) => it.startsWith('POST') && it.includes('push.example/1')));
  await page.waitForSelector('#push:checked:enabled');
  await page.uncheck('#push');
  await until('it to be off', () => asked.some((it) => it.startsWith('DELETE')));

  await home.acpctl('run', '-s', 'told', 'say #told');
  const { sessionId, agent } = JSON.parse(await home.acpctl('session', 'show', 'told', '--json'));
  const probe = await context.newCDPSession(page);
  /** @type {string | undefined} */
  let registrationId;
  probe.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => { registrationId = registrations[0]?.registrationId ?? registrationId; });
  await probe.send('ServiceWorker.enable');
  await Promise.all([until('the service worker', () => registrationId), page.evaluate('navigator.serviceWorker.ready.then(() => 0)')]);
  // Who looks at the page sees it there; a worker that is not active gets nothing.
  await page.goto('about:blank');
  await probe.send('ServiceWorker.deliverPushMessage', { origin: home.url, registrationId: registrationId ?? '',
    data: JSON.stringify({ title: 'told', body: 'demo asks you something', agent, session: sessionId }) });
  const [worker] = context.serviceWorkers();
  const shown = () => worker.evaluate(async () => (await /** @type {any} */ (globalThis).registration.getNotifications())
    .map((/** @type {any} */ it) => [it.title, it.body, it.data]));
  const [[title, body, hash]] = await until('the notification', async () => {
    const all = await shown();
    return all.length > 0 ? all : undefined;
  });
  assert.deepEqual([title, body], ['told', 'demo asks you something']);
  assert.equal(hash, `#/s/${encodeURIComponent(agent)}/${encodeURIComponent(sessionId)}`);
  await page.goto(`${home.url}/${hash}`);
  await page.waitForSelector('.answer:has-text("#told")');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('prompts wait, are changed and taken back, and a turn is stopped', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.prompt('queue', '[slow 600]');
  await openSession(page, 'queue');
  await page.waitForSelector('.stop');
  for (const text of ['say #first', 'say #second']) {
    await page.fill('#prompt', text);
    await page.click('button:text-is("Queue")');
    await page.waitForSelector(`.queue .waiting:has-text("${text}")`);
  }
  await page.click('.queue .waiting:has-text("#second") button[aria-label="take back"]');
  await page.waitForSelector('.queue .waiting:has-text("#second")', { state: 'detached' });
  await page.click('.queue .waiting:has-text("#first") button:text-is("Edit")');
  await page.fill('.queue textarea', 'say #changed');
  await page.click('.queue button:text-is("Save")');
  await page.waitForSelector('.queue .waiting:has-text("#changed")');
  await page.click('.stop');
  await page.click('button:text-is("Only this turn")');
  await page.waitForSelector('.answer:has-text("#changed")');
  assert.equal(await page.locator('.prompt:has-text("#changed")').count(), 1);
  assert.equal(await page.locator('.prompt:has-text("#first")').count(), 0);
  await page.fill('#prompt', '[slow 600]');
  await page.press('#prompt', 'Enter');
  await page.waitForSelector('.stop');
  await page.fill('#prompt', 'say #third');
  await page.click('button:text-is("Queue")');
  await page.waitForSelector('.queue .waiting:has-text("#third")');
  await page.click('.stop');
  await page.click('button:text-is("Also the 1 queued")');
  await page.waitForSelector('.queue', { state: 'detached' });
  await until('the words to be in the field again', async () => (await page.inputValue('#prompt')) === 'say #third');
  assert.equal(await page.locator('.prompt:has-text("#third")').count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a form is filled in', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const form = { jsonrpc: '2.0', id: 991, method: 'elicitation/create', params: {
    sessionId: '$SESSION', mode: 'form', message: 'Which licence?', requestedSchema: { type: 'object', required: ['licence'], properties: {
      licence: { type: 'string', title: 'Licence', enum: ['MIT', 'Apache-2.0'] }, year: { type: 'integer', title: 'Year' }, sign: { type: 'boolean', title: 'Sign it' },
    } } } };
  await home.prompt('form', `${home.raw('form', [form])} [hang-cancel]`);
  await openSession(page, 'form');
  await page.waitForSelector('.question:has-text("Which licence?")');
  await page.check('.question .allows input');
  await page.waitForSelector('.question .confirm:has-text("Fill in licence first")');
  await page.selectOption('.question select', 'MIT');
  await page.fill('.question input[type=number]', '2026');
  await page.waitForSelector('.question .confirm[aria-disabled="false"]');
  await page.click('.question .confirm');
  await page.waitForSelector('.said-line:has-text("accepted by")');
  await page.click('.stop');
  await page.waitForSelector('.turn');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a call that changes while it is asked about is asked anew', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const call = (/** @type {string} */ command) => ({ toolCallId: 'c', title: 'Tidy up', kind: 'execute', rawInput: { command } });
  const ask = { jsonrpc: '2.0', id: 992, method: 'session/request_permission', params: { sessionId: '$SESSION', toolCall: call('ls'),
    options: [{ optionId: 'y', name: 'Allow', kind: 'allow_once' }, { optionId: 'n', name: 'Reject', kind: 'reject_once' }] } };
  const first = home.raw('first', [update({ sessionUpdate: 'tool_call', status: 'pending', ...call('ls') }), ask]);
  const second = home.raw('second', [update({ sessionUpdate: 'tool_call_update', ...call('rm -rf /') })]);
  await home.prompt('changed', `${first} [pause asked] ${second} [hang-cancel]`);
  await openSession(page, 'changed');
  await page.waitForSelector('.question .command:has-text("ls")');
  await page.check('.question .allows input');
  home.release('asked');
  await page.waitForSelector('.question .command:has-text("rm -rf /")');
  await page.waitForSelector('.question .changed:has-text("another call")');
  assert.equal(await page.locator('.question input:checked').count(), 0, 'what was chosen was another call');
  await page.check('.question .rejects input');
  await page.waitForSelector('.question .confirm[aria-disabled="false"]');
  await page.click('.question .confirm');
  await page.waitForSelector('.said-line:has-text("denied")');
  await page.click('.stop');
  await page.waitForSelector('.turn');
  await page.waitForSelector('.call .line:has-text("· denied")');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('who may only watch is told what that means', async () => {
  const { page, context, wrong } = await enter(browser, home, {}, '--scope', 'watch');
  await home.prompt('watched', '[ask]');
  await openSession(page, 'watched');
  await page.waitForSelector('.question .confirm:has-text("no `answer` scope")');
  assert.ok(await page.locator('.question .options input').first().isDisabled());
  assert.ok(await page.locator('#prompt').isDisabled());
  assert.match(await page.locator('#prompt').getAttribute('placeholder') ?? '', /no `prompt` scope/);
  assert.ok(await page.locator('.options-button').isDisabled());
  await home.acpctl('allow', 'watched');
  await page.waitForSelector('.question', { state: 'detached' });
  await page.waitForSelector('.said-line:has-text("by")');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a session begins, has modes, and is found', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await page.goto(`${home.url}/#/new`);
  await page.fill('#new-cwd', home.path('work'));
  await page.fill('#new-name', 'made');
  await page.fill('#new-text', 'say #needleword');
  await page.click('button:text-is("Begin")');
  await page.waitForSelector('.session-head h1:text-is("made")');
  await page.waitForSelector('.answer:has-text("#needleword")');
  assert.equal(await page.locator('.prompt').count(), 1);
  await page.click('.options-button');
  await page.waitForSelector('.menu select');
  const mode = page.locator('.menu select').first();
  const values = await mode.locator('option').evaluateAll((all) => all.map((it) => /** @type {HTMLOptionElement} */ (it).value));
  await mode.selectOption(values[values.length - 1]);
  await until('the mode to be told', async () => (await mode.inputValue()) === values[values.length - 1]);
  await page.keyboard.press('Escape');
  await page.goto(`${home.url}/#/search`);
  await page.fill('.dialog input', 'needlewor');
  await page.click('.hits a');
  await page.waitForSelector('.row.is-chosen:has-text("needleword")');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a session begins in a worktree of its own, and what git says is told in the form', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const repository = home.path('home/repository');
  const git = (/** @type {string[]} */ ...args) => execFileSync('git', ['-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { env: home.env });
  mkdirSync(repository);
  await page.goto(`${home.url}/#/new`);
  const begin = async (/** @type {string} */ name) => {
    await page.fill('#new-cwd', repository);
    await page.fill('#new-name', name);
    await page.check('#new-worktree');
    await page.click('button:text-is("Begin")');
  };
  await begin('apart');
  await page.waitForSelector('.trouble:has-text("is in no git repository")');
  git('init', '-q', '-b', 'main');
  git('commit', '-q', '--allow-empty', '-m', 'first');
  await begin('not a branch');
  await page.waitForSelector('.trouble:has-text("cannot name a branch")');
  assert.equal(await page.inputValue('#new-name'), 'not a branch', 'what was written stays');
  await begin('apart');
  await page.waitForSelector('.session-head h1:text-is("apart")');
  const place = `${repository}.worktrees/apart`;
  const [{ cwd }] = JSON.parse(await home.acpctl('session', 'ls', '--json')).sessions.filter((/** @type {any} */ it) => it.name === 'apart');
  assert.equal(cwd, place);
  assert.equal(String(execFileSync('git', ['-C', place, 'symbolic-ref', '--short', 'HEAD'])).trim(), 'acpd/apart');
  // One whose session does not begin goes again.
  await page.goto(`${home.url}/#/new`);
  await page.selectOption('#new-agent', 'broken');
  await begin('gone');
  await page.waitForSelector('.trouble');
  await until('the worktree to be removed', () => !existsSync(`${repository}.worktrees/gone`));
  assert.equal(String(git('branch', '--list', 'acpd/*')).replace(/[ +*]/g, '').trim(), 'acpd/apart');
  assert.deepEqual(wrong.filter((it) => !/status of 4\d\d/.test(it)), []);
  await context.close();
});

scene('a subagent, pictures and hostile names are shown as what they are', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const picture = DOT;
  const raw = home.raw('odd.raw', [
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'image', mimeType: 'image/png', data: picture } }),
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'image', mimeType: 'image/svg+xml', data: picture } }),
    update({ sessionUpdate: 'tool_call', toolCallId: '<b>', title: '<img src=x onerror=alert(1)>\u202e', kind: 'edit', status: 'completed',
      content: [{ type: 'diff', path: '<script>', oldText: 'a\n', newText: '<script>alert(1)</script>\n' }] }),
    says('\n\n<img src=x onerror="window.pwned=1"> [x](javascript:window.pwned=1)'),
  ]);
  await home.acpctl('run', '-s', 'odd', raw);
  await openSession(page, 'odd');
  await page.waitForSelector('.answer:has-text("<img src=x")');
  assert.equal(await page.locator('.answer img').count(), 1, 'a picture of a known kind');
  assert.ok((await page.locator('.answer img').getAttribute('src'))?.startsWith('blob:'));
  await page.click('.call .head');
  await page.waitForSelector('.diff:has-text("<script>alert(1)</script>")');
  assert.equal(await page.evaluate(() => 'pwned' in window), false);
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a_hostile_word_or_depth_leaves_the_rest_of_the_page', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const deep = `${'> '.repeat(600)}deep`;
  const lines = [
    update({ sessionUpdate: 'plan', entries: [{ content: 'a step', status: '__proto__', priority: 'constructor' }] }),
    update({ sessionUpdate: 'tool_call', toolCallId: 'c', title: 'A tool', kind: 'constructor', status: 'toString', rawInput: { command: { __proto__: 1 } } }),
    says(`${deep}\n\nbelow it\n\n`), says('```constructor\ncode\n```\n\n'),
  ];
  await home.acpctl('run', '-s', 'poisoned', `${home.raw('poisoned.jsonl', lines)} [stop constructor]`).catch(() => {});
  await home.acpctl('run', '-s', 'neighbour', 'say #fine');
  await page.waitForSelector('.entry:has(.name:text-is("poisoned"))');
  await openSession(page, 'poisoned');
  await page.waitForSelector('.answer:has-text("below it")');
  await page.waitForSelector('.turn:has-text("constructor")');
  await openSession(page, 'neighbour');
  await page.waitForSelector('.answer:has-text("say #fine")');
  assert.equal(await page.locator('.not-shown').count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('code_of_each_language_is_shown_whole', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const code = 'fn main() {\n    println!("x {}", y);\n    let z = "after the string";\n}';
  await home.acpctl('run', '-s', 'coder', `${home.raw('coder.jsonl', [says(`\`\`\`rust\n${code}\n\`\`\`\n`)])} say #over`);
  await openSession(page, 'coder');
  await page.waitForSelector('.code .hl-string');
  assert.equal(await page.locator('.code code').innerText(), code);
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('sending_follows_again_after_a_block_was_unfolded', async () => {
  const { page, context, wrong } = await enter(browser, home);
  await home.acpctl('run', '-s', 'follower', '[tool build] [chunks 60]');
  await openSession(page, 'follower');
  await page.waitForSelector('.turn');
  await page.locator('.scroller').press('Home');
  await page.locator('.row .head').first().click();
  await page.waitForSelector('.to-end');
  await page.fill('#prompt', 'say #followed');
  await page.press('#prompt', 'Enter');
  await page.waitForSelector('.answer:has-text("say #followed")');
  await page.waitForSelector('.to-end', { state: 'detached' });
  await until('the end to be on the screen', () => page.locator('.scroller').evaluate((it) => it.scrollHeight - it.clientHeight - it.scrollTop < 2));
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('only_installed_agents_are_offered_and_last_lines_of_a_dead_one_shown', async () => {
  const { page, context, wrong } = await enter(browser, home);
  const { agents } = JSON.parse(await home.acpctl('agent', 'ls', '--json'));
  const installed = agents.filter((/** @type {any} */ it) => it.installed !== false).map((/** @type {any} */ it) => it.name);
  assert.ok(installed.length < agents.length);
  await page.goto(`${home.url}/#/new`);
  await page.waitForSelector('#new-agent option:text-is("broken")', { state: 'attached' });
  const offered = await page.locator('#new-agent option').evaluateAll((all) => all.map((it) => /** @type {HTMLOptionElement} */ (it).value));
  assert.deepEqual(offered.sort(), installed.sort());
  await page.selectOption('#new-agent', 'broken');
  await page.fill('#new-cwd', home.path('work'));
  await page.fill('#new-text', 'hello');
  await page.click('button:text-is("Begin")');
  await page.waitForSelector('.trouble pre:has-text("no model is configured")');
  assert.deepEqual(wrong, []);
  await context.close();
});

scene('a_block_that_cannot_be_shown_says_so_and_the_rest_is_shown', async () => {
  const { page, context, wrong } = await enter(browser, home, { serviceWorkers: 'block' });
  await page.route('**/ui/block.js', async (route) => {
    const answer = await route.fetch();
    const text = await answer.text();
    const broken = text.replace('const { tool, kind, progress } = block;', "const { tool, kind, progress } = block;\n  if (block.line[0][1].startsWith('boom')) throw new Error('boom');");
    assert.notEqual(broken, text);
    await route.fulfill({ response: answer, body: broken });
  });
  const call = (/** @type {string} */ title) => update({ sessionUpdate: 'tool_call', toolCallId: title, title, kind: 'read', status: 'in_progress' });
  await home.acpctl('run', '-s', 'halved', `${home.raw('halved.jsonl', [call('boom'), says('the rest')])} [tool fine]`);
  await page.reload();
  await openSession(page, 'halved');
  await page.waitForSelector('.answer:has-text("the rest")');
  assert.equal(await page.locator('.not-shown').innerText(), 'This block could not be shown');
  assert.deepEqual(wrong, []);
  await context.close();
});
