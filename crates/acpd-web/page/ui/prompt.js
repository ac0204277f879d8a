// @ts-check
// The prompt field, and the queued prompts.

import { lookUp } from '../lookup.js';
import { oneLine } from '../text/escape.js';
import { useEffect, useLayoutEffect, useRef, useState } from '../lib/hooks.js';
import { textIn } from '../session.js';
import { kept } from '../store.js';
import { Attach, Attached, blocksOf, useFiles } from './files.js';
import { html } from './html.js';
import { Guard, Trouble } from './parts.js';
import { Steps } from './block.js';

/** @typedef {import('../lookup.js').Json} Json */
/** @typedef {import('../session.js').Session} Session */

/** Commands of the agent that begin with the text. @param {Json[]} commands @param {string} text */
function fitting(commands, text) {
  const word = /^\/(\S*)$/.exec(text)?.[1].toLowerCase();
  return word === undefined ? [] : commands.filter(({ name }) => name.toLowerCase().startsWith(word) && name !== word);
}

/** Keys that choose the next command. @type {Record<string, number>} */
const MOVES = { ArrowDown: 1, ArrowUp: -1 };

const isTouch = () => matchMedia('(pointer: coarse)').matches;

/** @param {{session: Session, row?: Json, mayPrompt: boolean, isWorking: boolean, onSent: () => void}} props */
export function Prompt({ session, row, mayPrompt, isWorking, onSent }) {
  const name = `draft.${session.agent}/${session.id}`;
  const [text, setText] = useState(() => kept.get(name) ?? '');
  const files = useFiles(session.takes);
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  /** @param {string} now */
  const write = (now) => {
    setText(now);
    kept.set(name, now || undefined);
  };
  useEffect(() => {
    const { returned } = session;
    if (returned === undefined) return;
    session.returned = undefined;
    write(text ? `${returned}\n\n${text}` : returned);
  }, [session.returned]);
  useLayoutEffect(() => {
    const it = field.current;
    if (!it) return;
    it.style.height = 'auto';
    it.style.height = `${Math.min(it.scrollHeight + 2, innerHeight * 0.4)}px`;
  }, [text]);
  const commands = fitting(session.state.header.commands, text);
  const [chosen, setChosen] = useState(0);
  const command = commands.at(Math.min(chosen, commands.length - 1));
  /** @param {Json} command */
  const complete = ({ name }) => {
    write(`/${name} `);
    setChosen(0);
    field.current?.focus();
  };
  const why = disabledWhy(session, row, mayPrompt);
  /** @param {'prompt' | 'steer'} how */
  const send = (how) => {
    const blocks = blocksOf(text, files);
    if (why || blocks.length === 0) return;
    if (!session.link.isLive) {
      // Unsent text stays in the field, which a closed page does not lose.
      session.error = { text: 'acpd is not connected', hint: 'what you wrote stays here; send it when acpd is back' };
      session.changed();
      return;
    }
    if (how === 'steer') session.steer(text, blocks);
    else session.prompt(text, blocks);
    onSent();
    write('');
    files.clear();
    field.current?.focus();
  };
  /** @param {any} event */
  const key = (event) => {
    const by = lookUp(MOVES, event.key);
    if (command && !event.isComposing && (by || event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey))) {
      event.preventDefault();
      if (by) setChosen((chosen + by + commands.length) % commands.length);
      else complete(command);
      return;
    }
    // While an input method composes, Enter belongs to it.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229 || isTouch()) return;
    event.preventDefault();
    send(event.ctrlKey || event.metaKey ? (isWorking && session.canSteer ? 'steer' : 'prompt') : 'prompt');
  };
  const cannot = Boolean(why) || (!text.trim() && files.all.length === 0);
  const { usage } = session.state.header;
  return html`<div class="dock">
    ${session.error && html`<${Trouble} ...${session.error} onClose=${() => { session.error = undefined; session.changed(); }} />`}
    <${Guard} what="The plan and the queue" of=${session.rev}><${Pinned} session=${session} mayPrompt=${mayPrompt} isWorking=${isWorking} /><//>
    ${session.sent.map((sent) => html`<div class="waiting is-dim" key=${sent}><span class="words">${oneLine(sent.text)}</span> sending…</div>`)}
    <${Attached} files=${files} />
    ${commands.length > 0 && html`<ul class="commands" role="listbox" aria-label="commands of the agent">${commands.map((it) =>
      html`<li key=${it.name} role="option" aria-selected=${it === command} onClick=${() => complete(it)}>
        <span class="is-name">/${it.name}</span>${it.hint && html` <span class="is-dim">${it.hint}</span>`} <span class="is-dim">${it.description}</span></li>`)}</ul>`}
    <form class="prompt-form" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); send('prompt'); }}>
      <textarea ref=${field} id="prompt" rows="1" value=${text} disabled=${Boolean(why)} enterkeyhint=${isTouch() ? 'enter' : 'send'}
        placeholder=${why ?? (isWorking ? 'Queue a prompt for after this turn' : `Say something to ${oneLine(session.agent)}`)} aria-label="prompt" maxlength="1000000"
        onInput=${(/** @type {any} */ event) => { write(event.target.value); if (!session.isController && mayPrompt) session.promote().catch(() => {}); }}
        onKeyDown=${key} onPaste=${(/** @type {any} */ event) => { if (event.clipboardData?.files.length) { event.preventDefault(); files.add(event.clipboardData.files); } }}></textarea>
      <div class="buttons">
        <${Attach} files=${files} disabled=${Boolean(why)} />
        <span class="usage is-dim">${usage && usage.size > 0 ? `${Math.round(100 * usage.used / usage.size)}%` : ''}</span>
        ${isWorking && html`<${Stop} session=${session} mayPrompt=${mayPrompt} />`}
        ${isWorking && session.canSteer && html`<button type="button" disabled=${cannot} onClick=${() => send('steer')}>Steer</button>`}
        <button type="submit" class="primary" disabled=${cannot}>${isWorking ? 'Queue' : 'Send'}</button>
      </div>
    </form>
  </div>`;
}

/** Ends the turn; with queued prompts it offers both choices. @param {{session: Session, mayPrompt: boolean}} props */
function Stop({ session, mayPrompt }) {
  const [isAsked, setAsked] = useState(false);
  const queued = session.queue.length;
  /** @param {boolean} turnOnly */
  const stop = (turnOnly) => {
    setAsked(false);
    session.stop(turnOnly);
  };
  if (!isAsked || queued === 0) {
    return html`<button type="button" class="stop" disabled=${!mayPrompt} onClick=${() => (queued > 0 ? setAsked(true) : stop(false))}>Stop</button>`;
  }
  return html`<button type="button" class="stop" onClick=${() => stop(false)}>Also the ${queued} queued</button>
    <button type="button" onClick=${() => stop(true)}>Only this turn</button>`;
}

/** Why the field is disabled. @param {Session} session @param {Json | undefined} row @param {boolean} mayPrompt */
function disabledWhy(session, row, mayPrompt) {
  if (!mayPrompt) return 'This browser may not prompt: its key has no `prompt` scope';
  if (session.phase === 'over') return session.why;
  if (row?.state === 'lost') return 'The agent no longer has this session';
  return undefined;
}

/** The plan and the queued prompts above the field. @param {{session: Session, mayPrompt: boolean, isWorking: boolean}} props */
function Pinned({ session, mayPrompt, isWorking }) {
  const { plan } = session.state.header;
  const [isOpen, setOpen] = useState(false);
  return html`
    ${isWorking && plan && html`<div class="pinned"><button type="button" class="head" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <span class="icon" aria-hidden="true">☰</span><span class="line">${plan.line}</span>
      <span class="chevron" aria-hidden="true">${isOpen ? '▾' : '▸'}</span></button>
      ${isOpen && html`<${Steps} entries=${plan.entries} />`}</div>`}
    ${session.queue.length > 0 && html`<ul class="queue" aria-label="prompts that wait">${session.queue.map((prompt, at) =>
      html`<${Queued} key=${prompt.ticket} session=${session} prompt=${prompt} isFirst=${at === 0} mayPrompt=${mayPrompt} />`)}</ul>`}`;
}

/** @param {{session: Session, prompt: Json, isFirst: boolean, mayPrompt: boolean}} props */
function Queued({ session, prompt, isFirst, mayPrompt }) {
  const said = textIn(prompt.prompt);
  const others = prompt.prompt.filter((/** @type {Json} */ it) => it.type !== 'text');
  const [edit, setEdit] = useState(/** @type {string | undefined} */ (undefined));
  const { ticket } = prompt;
  const save = async () => {
    const blocks = [{ type: 'text', text: edit }, ...others];
    if (await session.changeQueue('edit', { ticket, prompt: blocks })) setEdit(undefined);
  };
  if (edit !== undefined) {
    return html`<li class="waiting is-edited"><textarea aria-label="prompt that waits" value=${edit} rows="3" onInput=${(/** @type {any} */ event) => setEdit(event.target.value)}></textarea>
      <button type="button" class="primary" disabled=${!edit.trim()} onClick=${save}>Save</button>
      <button type="button" onClick=${() => setEdit(undefined)}>Back</button></li>`;
  }
  return html`<li class="waiting"><span class="is-dim">queued</span> <span class="words">${oneLine(said) || '[no text]'}</span>
    ${mayPrompt && html`<span class="acts">
      ${!isFirst && html`<button type="button" class="quiet" onClick=${() => session.changeQueue('move', { ticket, to: 'up' })} aria-label="move up">↑</button>`}
      <button type="button" class="quiet" onClick=${() => setEdit(said)}>Edit</button>
      <button type="button" class="quiet" onClick=${() => session.changeQueue('remove', { ticket })} aria-label="take back">✕</button></span>`}</li>`;
}
