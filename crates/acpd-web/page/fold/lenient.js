// @ts-check
// What an agent wrote, in the types in which it is shown: one member that cannot be read never hides the others. As
// `acpd-view/src/lenient.rs` reads it.

import { isObject, text } from './block.js';

/** @typedef {import('./block.js').Json} Json */

/** Stands where something cannot be read. */
export const NOT_READ = 'could not be read';
/** Levels of nesting that are kept. */
const LEVELS = 100;
/** Members that are text. Another value in their place is shown as JSON. */
const TEXTS = new Set(['category', 'compactionId', 'currentModeId', 'description', 'error', 'hint', 'id', 'kind',
  'messageId', 'mimeType', 'name', 'newText', 'oldText', 'path', 'planId', 'priority', 'severity', 'status', 'step',
  'text', 'title', 'toolCallId', 'uri', 'value']);
/** Members that are data of the agent, and are never changed. */
const DATA = new Set(['_meta', 'currentValue', 'rawInput', 'rawOutput']);

/** A value that every reader takes: whole characters, numbers in range, few levels. @param {any} value
 * @param {number} [left] @returns {any} */
export function legible(value, left = LEVELS) {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value === 'number') return Number.isFinite(value) ? value : NOT_READ;
  if (typeof value !== 'object' || value === null) return value;
  if (left === 0) return NOT_READ;
  if (Array.isArray(value)) return value.map((item) => legible(item, left - 1));
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name.toWellFormed(), legible(it, left - 1)]));
}

/** Makes text of what is to be text, and leaves out texts that are null; a title that is null is taken away.
 * @param {any} value @returns {any} */
export function mend(value) {
  if (Array.isArray(value)) return value.map(mend);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([name, it]) => it !== null || !TEXTS.has(name) || name === 'title');
  return Object.fromEntries(kept.map(([name, it]) => {
    if (TEXTS.has(name)) return [name, typeof it === 'string' || it === null ? it : JSON.stringify(it)];
    return [name, DATA.has(name) ? it : mend(it)];
  }));
}

/** The content blocks of a chunk, which some agents write as a list or as bare text. @param {unknown} content */
export const blocks = (content) => (Array.isArray(content) ? content : [content]).map(block);

/** The items that a tool call shows: each is an object with a type. @param {unknown} content */
export const items = (content) => (Array.isArray(content) ? content : [content]).map((item) => {
  const type = isObject(item) ? kindOf(item) : undefined;
  if (type === undefined) return { type: 'content', content: block(item) };
  return type === 'content' ? { ...item, type, content: block(item.content) } : { ...item, type };
});

/** The type of an item of a tool call; of one that does not say it, by what it has. @param {Json} item */
function kindOf(item) {
  if (['content', 'diff', 'terminal', 'session'].includes(item.type)) return item.type;
  const guess = 'content' in item ? 'content' : 'path' in item ? 'diff' : 'terminalId' in item ? 'terminal' : undefined;
  return guess ?? text(item, 'type');
}

/** A content block: bare text is one, too, and so is text of an unknown kind. @param {any} value @returns {Json} */
function block(value) {
  const isKnown = ['image', 'audio', 'resource_link', 'resource'].includes(value?.type);
  if (isObject(value)) return 'text' in value && !isKnown ? { ...value, type: 'text' } : value;
  return ['string', 'number', 'boolean'].includes(typeof value) ? { type: 'text', text: String(value) } : {};
}

/** The steps of a plan, under the names that agents give them. @param {Json} plan @returns {Json[]} */
export function steps(plan) {
  const listed = plan.entries ?? plan.steps;
  return (Array.isArray(listed) ? listed : []).map((step) => {
    if (!isObject(step)) return { content: typeof step === 'string' ? step : NOT_READ, priority: '', status: '' };
    const said = step.content ?? step.step ?? step.title ?? step.text ?? step.description ?? NOT_READ;
    const content = isObject(said) ? said.text ?? NOT_READ : typeof said === 'string' ? said : JSON.stringify(said);
    return { content, priority: step.priority ?? '', status: step.status ?? '' };
  });
}
