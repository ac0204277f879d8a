// @ts-check
// State of a session beside its conversation, as `acpd-view/src/header.rs` has it.

import { isCount, isObject, lookUp, text } from './block.js';

/** @typedef {import('./block.js').Json} Json */

/** The newest value of everything that a session is. */
export class Header {
  constructor() {
    /** @type {string | undefined} */ this.title = undefined;
    /** @type {string | undefined} */ this.mode = undefined;
    /** The modes to choose from; the journal does not have them.
     * @type {Json[]} */ this.modes = [];
    /** Its options: the model is one of them.
     * @type {Json[]} */ this.options = [];
    /** Slash commands.
     * @type {Json[]} */ this.commands = [];
    /** @type {Json | undefined} */ this.usage = undefined;
    /** The newest plan.
     * @type {Json[]} */ this.plan = [];
    /** The last turn that began.
     * @type {number | undefined} */ this.turn = undefined;
    this.working = false;
    /** What the daemon says of the session; none until it has said something.
     * @type {Json | undefined} */ this.live = undefined;
    /** What of this the lines told that were read.
     * @type {Set<keyof Header>} */ this.known = new Set();
  }

  /** @param {Partial<Header>} values */
  learn(values) {
    Object.assign(this, values);
    for (const field of Object.keys(values)) this.known.add(/** @type {keyof Header} */ (field));
  }

  /** Takes what older lines told, where these told nothing. @param {Header} older */
  takeOlder(older) {
    for (const field of older.known) {
      if (!this.known.has(field)) Object.assign(this, { [field]: lookUp(/** @type {Json} */ (older), field) });
      this.known.add(field);
    }
    if (this.usage && older.usage) this.usage = { ...this.usage, cost: this.usage.cost ?? older.usage.cost };
  }

  /** What an update says of the session, if it is one of these. @param {string} kind @param {Json} update */
  update(kind, update) {
    switch (kind) {
      case 'config_option_update': return this.learn({ options: optionsOf(update.configOptions) });
      case 'available_commands_update': return this.learn({ commands: commandsOf(update.availableCommands) });
      case 'usage_update': {
        const { used, size, cost } = update;
        const isPaid = typeof cost?.amount === 'number';
        if (!isCount(used) && !isPaid) return undefined;
        // An agent that does not repeat the cost has not taken it back.
        return this.learn({ usage: {
          used: isCount(used) ? used : this.usage?.used ?? 0, size: isCount(size) ? size : 0,
          cost: isPaid ? { amount: cost.amount, currency: text(cost, 'currency') ?? '' } : this.usage?.cost,
        } });
      }
      case 'session_info_update':
        if (Object.hasOwn(update, 'title')) this.learn({ title: text(update, 'title') });
        return undefined;
      default: return undefined;
    }
  }

  /** What people call a mode. @param {string} id @returns {string} */
  modeName(id) {
    return this.modes.find((mode) => mode.id === id)?.name ?? id;
  }

  /** The option that stands for the model, the mode or another category. @param {string} category */
  option(category) {
    return this.options.find((option) => option.category === category);
  }
}

/** @param {unknown} list @returns {Json[]} */
export const optionsOf = (list) =>
  Array.isArray(list) ? list.filter((it) => isObject(it) && text(it, 'id') !== undefined && 'currentValue' in it) : [];

/** @param {unknown} list @returns {Json[]} */
const commandsOf = (list) =>
  Array.isArray(list) ? list.filter((it) => text(it, 'name') !== undefined) : [];

/** The values to choose from, of all groups. @param {Json} option @returns {{value: string, name?: string}[]} */
export const choices = (option) =>
  (Array.isArray(option.options) ? option.options : []).flatMap((entry) =>
    Array.isArray(entry?.options) ? entry.options : [entry]).filter((it) => text(it, 'value') !== undefined);

/** The current value as people call it. @param {Json} option @returns {string} */
export function valueName(option) {
  const value = option.currentValue;
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return choices(option).find((choice) => choice.value === value)?.name ?? String(value);
}
