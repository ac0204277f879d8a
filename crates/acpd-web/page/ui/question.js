// @ts-check
// A question of an agent: the whole subject, no preset choice, and no answer by accident.
//
//   arming ──0.6 s──▶ open ──choose, Confirm──▶ sending ──▶ closed
//     ▲                 │                          │
//     └── it moved, or the call changed            └──▶ refused: open again
//
// Keyboards and screen readers confirm twice. On touch, Confirm is held for an allowing answer.

import { lookUp } from '../lookup.js';
import { oneLine, prose, verbatim } from '../text/escape.js';
import { age, bytes } from '../text/human.js';
import { useEffect, useLayoutEffect, useRef, useState } from '../lib/hooks.js';
import { address } from '../markdown.js';
import { Diff } from './block.js';
import { html } from './html.js';
import { Copy } from './parts.js';

/** @typedef {import('../lookup.js').Json} Json */

/** Time without a movement before the card takes an answer (ms). */
const ARMING = 600;
/** Time to hold an allowing answer on touch (ms). */
const HOLD = 800;
/** Time for the second confirmation (ms). */
const TWICE = 5000;

/** @param {{asked: Json, number: number, of: number, now: number, mayAnswer: boolean, folder: string,
 *   answer: (answer: Json) => Promise<unknown>}} props */
export function Question({ asked, number, of, now, mayAnswer, folder, answer }) {
  const { question, agent, at } = asked;
  const [choice, setChoice] = useState(/** @type {string | undefined} */ (undefined));
  const [values, setValues] = useState(/** @type {Json} */ ({}));
  const [isSending, setSending] = useState(false);
  const [refused, setRefused] = useState(/** @type {{text: string, hint?: string} | undefined} */ (undefined));
  const [seenEnd, setSeenEnd] = useState(false);
  const card = useRef(/** @type {HTMLElement | null} */ (null));
  const isArmed = useArmed(card, asked.id);
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  // An allowing answer waits until the end of the question was on the screen.
  const look = () => {
    const it = body.current;
    if (it && it.scrollHeight - it.clientHeight - it.scrollTop < 8) setSeenEnd(true);
  };
  useLayoutEffect(look);
  const options = optionsOf(question);
  const chosen = options.find((option) => option.id === choice);
  const isForm = question.kind === 'form';
  const missing = isForm && chosen?.allows ? missingOf(question, values) : undefined;
  const why = !mayAnswer ? 'this browser may not answer: its key has no `answer` scope'
    : !chosen ? 'Confirm (choose first)' : chosen.allows && !seenEnd ? 'Scroll to the end first'
    : missing ? `Fill in ${oneLine(missing)} first` : undefined;
  const send = async () => {
    if (!chosen || isSending || why) return;
    setSending(true);
    setRefused(undefined);
    try {
      await answer(isForm && chosen.allows ? { kind: 'accept', content: contentOf(question, values) } : chosen.answer);
    } catch (/** @type {any} */ error) {
      setRefused({ text: error.message, hint: error.hint });
      setSending(false);
    }
  };
  return html`<section class="question" role="group" aria-label=${`question ${number} of ${of}`} ref=${card}>
    <header><strong>${heading(question, agent, folder)}</strong>
      <span class="is-dim">${of > 1 && `${number} of ${of} · `}asked ${age(now - at)} ago</span></header>
    ${question.changed > 0 && html`<p class="changed is-warning">Changed while you looked${question.changed > 1 && ` (${question.changed} times)`}: this is another call.</p>`}
    <div class="asked" ref=${body} onScroll=${look} tabindex="0" role="region" aria-label="what is asked">
      ${question.kind === 'permission' && html`<${Sheet} shown=${question.shown} title=${question.title} subject=${question.subject} />`}
      ${isForm && html`<p class="words">${prose(question.message)}</p><${Form} question=${question} values=${values} onChange=${setValues} id=${asked.id} />`}
      ${question.kind === 'url' && html`<p class="words">${prose(question.message)}</p>${address(question.url)
        ? html`<p><a href=${address(question.url)?.href} target="_blank" rel="noopener noreferrer">${prose(question.url)}</a></p>
          <p class="host">It leads to <strong>${prose(address(question.url)?.host ?? '')}</strong>.</p>`
        : html`<p><code>${verbatim(question.url)}</code></p>`}`}
    </div>
    <fieldset class="options" disabled=${isSending || !mayAnswer}><legend class="unseen">answer</legend>
      ${options.map((option) => html`<label key=${option.id} class=${option.allows ? 'allows' : 'rejects'}>
        <input type="radio" name=${`answer-${asked.id}`} checked=${choice === option.id} onChange=${() => setChoice(option.id)} />
        <span>${option.name}${option.more && html`<span class=${option.isOpposite ? 'is-warning' : 'is-dim'}> · ${option.more}</span>`}</span></label>`)}
    </fieldset>
    ${refused && html`<p class="refused is-bad" role="alert">${refused.text}${refused.hint && html`<span class="hint"> · ${refused.hint}</span>`}</p>`}
    <div class="decide"><p class="note is-dim">The agent waits until you choose.</p>
      <${Confirm} why=${why} isArmed=${isArmed} isSending=${isSending} allows=${chosen?.allows ?? false} send=${send}
        label=${chosen ? `Confirm: ${chosen.name}` : 'Confirm'} key=${`${asked.id} ${choice}`} /></div>
  </section>`;
}

/** Whether the card has not moved for a moment, so that a finger hits its target.
 * @param {{current: HTMLElement | null}} card @param {string} id */
function useArmed(card, id) {
  const [isArmed, setArmed] = useState(false);
  useEffect(() => {
    setArmed(false);
    let last = '';
    let since = performance.now();
    let frame = 0;
    const look = () => {
      const rect = card.current?.querySelector('.decide')?.getBoundingClientRect();
      const place = rect ? `${Math.round(rect.left)},${Math.round(rect.top)},${Math.round(rect.width)}` : '';
      const now = performance.now();
      if (place !== last) {
        last = place;
        since = now;
        setArmed(false);
      } else if (now - since >= ARMING) {
        setArmed(true);
      }
      frame = window.setTimeout(look, 100);
    };
    look();
    return () => clearTimeout(frame);
  }, [id]);
  return isArmed;
}

/** The one button that answers. @param {{why?: string, isArmed: boolean, isSending: boolean, allows: boolean,
 *   label: string, send: () => void}} props */
function Confirm({ why, isArmed, isSending, allows, label, send }) {
  const [isAsked, setAsked] = useState(false);
  const [isHeld, setHeld] = useState(false);
  const held = useRef({ timer: 0, isTouch: false });
  const isReady = !why && isArmed && !isSending;
  const release = () => {
    clearTimeout(held.current.timer);
    setHeld(false);
  };
  useEffect(() => release, []);
  /** @param {any} event */
  const press = (event) => {
    held.current.isTouch = event.pointerType === 'touch';
    if (!isReady || !allows || !held.current.isTouch) return;
    setHeld(true);
    held.current.timer = window.setTimeout(() => {
      setHeld(false);
      send();
    }, HOLD);
  };
  /** @param {any} event */
  const click = (event) => {
    if (!isReady) return;
    // A click without a pointer is a key or a screen reader.
    const isKey = event.detail === 0;
    if (isKey && !isAsked) {
      setAsked(true);
      setTimeout(() => setAsked(false), TWICE);
      return;
    }
    if (!isKey && held.current.isTouch && allows) return;
    send();
  };
  // Only for coarse pointers: a mouse on the same machine clicks.
  const isHeldDown = allows && matchMedia('(pointer: coarse)').matches;
  const words = isSending ? 'Sending…' : why ?? (isAsked ? `${label}? Once more` : isHeldDown ? label.replace(/^Confirm:/, 'Hold to confirm:') : label);
  return html`<button type="button" class=${`confirm primary ${isHeld ? 'is-held' : ''} ${allows ? 'allows' : ''}`} aria-disabled=${!isReady}
    onPointerDown=${press} onPointerUp=${release} onPointerLeave=${release} onPointerCancel=${release} onClick=${click}
    onContextMenu=${(/** @type {Event} */ event) => held.current.isTouch && event.preventDefault()}><span aria-live="polite">${words}</span></button>`;
}

/** @param {Json} question @param {string} agent @param {string} folder */
function heading({ kind, shown }, agent, folder) {
  const who = oneLine(agent);
  if (kind === 'form') return `${who} asks`;
  if (kind === 'url') return `${who} asks you to open a page`;
  /** @type {Record<string, string>} */
  const verbs = { execute: 'run this', edit: 'change this', delete: 'delete this', read: 'read this', move: 'move this', fetch: 'fetch this' };
  const where = shown?.folder ?? folder;
  return `${who} asks to ${lookUp(verbs, shown?.kind) ?? 'do this'}${where ? `, in ${oneLine(where)}` : ''}`;
}

/** The subject of the decision, and nothing else. @param {{shown?: Json, title?: string, subject?: string}} props */
function Sheet({ shown, title, subject }) {
  if (!shown) return html`<p class="words">${oneLine(title ?? subject ?? 'a tool call')}</p>`;
  const { commands = [], paths = [], urls = [], diffs = [], unclear = [], raw } = shown;
  const count = commands.reduce((/** @type {number} */ sum, /** @type {string} */ it) => sum + it.trimEnd().split('\n').length, 0);
  const all = commands.map((/** @type {string} */ it) => it.replace(/\n$/, '')).join('\n');
  const isNamed = (/** @type {string} */ path) => diffs.some((/** @type {Json} */ diff) => diff.path === path);
  return html`
    ${commands.map((/** @type {string} */ command) => html`<pre class="command">${command.replace(/\n$/, '').split('\n').map(verbatim).join('\n')}</pre>`)}
    ${commands.length > 0 && html`<p class="is-dim fact">${count} ${count === 1 ? 'line' : 'lines'}, all shown <${Copy} text=${all} /></p>`}
    ${shown.title && html`<p class="fact"><span class="is-dim">called by the agent:</span> ${oneLine(shown.title)}</p>`}
    ${[...paths.filter((/** @type {string} */ it) => !isNamed(it)), ...urls].map((it) => html`<p class="is-name fact">${verbatim(it)}</p>`)}
    ${diffs.map((/** @type {Json} */ diff) => diff.leftOut > 0
      ? html`<p class="is-warning">${oneLine(diff.path)}: ${bytes(diff.leftOut)} of changes, too many to show</p>`
      : html`<${Diff} ...${diff} />`)}
    ${unclear.map((/** @type {Json} */ it) => html`<p class="is-warning fact">not understood: ${it.member ? `\`${oneLine(it.member)}\`` : 'it'} ${oneLine(it.why)}</p>`)}
    ${raw && html`<pre class="command">${raw.text.split('\n').map(verbatim).join('\n')}</pre>`}
    ${raw?.leftOut > 0 && html`<p class="is-warning">and ${bytes(raw.leftOut)} more, which are not shown</p>`}`;
}

/** @typedef {{id: string, name: string, more?: string, isOpposite?: boolean, allows: boolean, answer: Json}} Option */
/** The possible answers. @param {Json} question @returns {Option[]} */
function optionsOf(question) {
  if (question.kind !== 'permission') {
    const yes = question.kind === 'form' ? 'send the form' : 'agree';
    return [
      { id: 'accept', name: yes, allows: true, answer: { kind: 'accept' } },
      { id: 'decline', name: 'decline', allows: false, answer: { kind: 'decline' } },
    ];
  }
  return question.options.map((/** @type {Json} */ { optionId, words, isOpposite, kind }) => {
    const always = kind === 'allow_always' && question.shown?.always;
    return {
      id: optionId, name: words, isOpposite, allows: !String(kind).startsWith('reject'),
      more: isOpposite ? "the agent's name for it says the opposite"
        : always ? `acpd remembers exactly this: ${oneLine(always)}` : undefined,
      answer: { kind: 'option', option: optionId },
    };
  });
}

/** The fields of a form, in their order. @param {Json} question @returns {[string, Json][]} */
const fieldsOf = ({ schema, order }) =>
  (order?.length > 0 ? order : Object.keys(schema?.properties ?? {})).map((/** @type {string} */ name) => [name, lookUp(schema?.properties, name) ?? {}]);

/** @param {Json | undefined} field @returns {{value: string, title: string}[] | undefined} */
function choicesOf(field) {
  const titled = field?.oneOf ?? field?.anyOf;
  if (titled) return titled.map((/** @type {Json} */ it) => ({ value: it.const, title: it.title ?? it.const }));
  return field?.enum?.map((/** @type {string} */ value) => ({ value, title: value }));
}

/** @param {Json} values @param {string} name @param {Json} field */
const valueOf = (values, name, field) => lookUp(values, name) ?? field.default;

/** The first required field without a value. @param {Json} question @param {Json} values @returns {string | undefined} */
const missingOf = (question, values) =>
  fieldsOf(question).find(([name, field]) => {
    const value = valueOf(values, name, field);
    const isEmpty = value === undefined || value === '' || (Array.isArray(value) && value.length === 0);
    return isEmpty && field.type !== 'boolean' && question.schema.required?.includes(name);
  })?.[0];

/** @param {Json} question @param {Json} values */
const contentOf = (question, values) => Object.fromEntries(fieldsOf(question).flatMap(([name, field]) => {
  const value = valueOf(values, name, field);
  if (field.type === 'boolean') return [[name, value === true]];
  return value === undefined || value === '' ? [] : [[name, ['number', 'integer'].includes(field.type) ? Number(value) : value]];
}));

/** @param {{question: Json, values: Json, onChange: (values: Json) => void, id: string}} props */
function Form({ question, values, onChange, id }) {
  /** @param {string} name @param {unknown} value */
  const set = (name, value) => onChange({ ...values, [name]: value });
  return html`<div class="form">${fieldsOf(question).map(([name, field]) => {
    const label = oneLine(field.title ?? name);
    const of = `${id}-${name}`;
    const value = valueOf(values, name, field);
    const isNeeded = question.schema.required?.includes(name);
    const choices = choicesOf(field.type === 'array' ? field.items : field);
    const input = field.type === 'boolean'
      ? html`<input id=${of} type="checkbox" checked=${value === true} onChange=${(/** @type {any} */ e) => set(name, e.target.checked)} />`
      : field.type === 'array' ? html`<select id=${of} multiple onChange=${(/** @type {any} */ e) => set(name, [...e.target.selectedOptions].map((it) => it.value))}>
          ${choices?.map((it) => html`<option value=${it.value} selected=${value?.includes?.(it.value)}>${oneLine(it.title)}</option>`)}</select>`
      : choices ? html`<select id=${of} value=${value ?? ''} onChange=${(/** @type {any} */ e) => set(name, e.target.value || undefined)}>
          <option value="">choose</option>${choices.map((it) => html`<option value=${it.value}>${oneLine(it.title)}</option>`)}</select>`
      : ['number', 'integer'].includes(field.type)
        ? html`<input id=${of} type="number" step=${field.type === 'integer' ? 1 : 'any'} min=${field.minimum} max=${field.maximum} value=${value ?? ''}
            onInput=${(/** @type {any} */ e) => set(name, e.target.value)} />`
      : html`<input id=${of} type="text" minlength=${field.minLength} maxlength=${field.maxLength} value=${value ?? ''} autocomplete="off"
          onInput=${(/** @type {any} */ e) => set(name, e.target.value)} />`;
    return html`<div class="field"><label for=${of}>${label}${isNeeded && html` <span class="is-dim">(needed)</span>`}</label>${input}
      ${field.description && html`<p class="is-dim">${prose(field.description)}</p>`}</div>`;
  })}</div>`;
}
