// What a client of version 2 sees of a session.
import { allow } from "./sdk.mjs";

/** A session as version 2 reports it. */
export class View {
  /** Messages and calls by kind and id: text, or the last status. */
  entities = new Map();
  /** Kinds of updates; of a state, its name or stop reason. */
  words = [];
  values;
  /** The last list of work in the background. */
  background;
  /** Terminals by id: whether they run. */
  terminals = new Map();
  /** Answers a question: at once, or when it is withdrawn. */
  answer = allow;
  #waiting = [];

  take(update) {
    const { sessionUpdate: kind, messageId, toolCallId, content, status } = update;
    this.words.push(update.stopReason ?? update.state ?? kind);
    if (messageId ?? toolCallId) {
      const name = `${kind} ${messageId ?? toolCallId}`;
      const known = this.entities.get(name) ?? "";
      this.entities.set(name, messageId ? said(known, content) : (status ?? known));
    }
    if (kind === "config_option_update") this.values = values(update);
    this.background = update.background ?? this.background;
    if (kind === "terminal_update") this.terminals.set(update.terminalId, !update.exitStatus);
    this.#waiting = this.#waiting.filter(({ isMet, found }) => !isMet() || found());
  }

  /** Resolves with the next update of this word. */
  until(word) {
    return this.when(() => word === this.words.at(-1));
  }

  /** Resolves when the agent has said this. */
  hears(text) {
    return this.when(() => this.answers().includes(text));
  }

  /** Resolves with the first update after which this is so. */
  when(isMet) {
    return new Promise((found) => this.#waiting.push({ isMet, found }));
  }

  /** Leaves questions open; returns promises of the next one and of its withdrawal. */
  hold() {
    const [asked, withdrawn] = [Promise.withResolvers(), Promise.withResolvers()];
    this.answer = (_, signal) => {
      asked.resolve();
      return new Promise((answer) =>
        signal.addEventListener("abort", () => {
          answer({ outcome: { outcome: "cancelled" } });
          withdrawn.resolve();
        }),
      );
    };
    return { asked: asked.promise, withdrawn: withdrawn.promise };
  }

  /** All that the agent has said in messages. */
  answers() {
    const messages = [...this.entities].filter(([name]) => name.startsWith("agent_message"));
    return messages.map(([, text]) => text).join("\n");
  }

  states() {
    return this.words.filter((word) => !/_update|_chunk|_message$/.test(word));
  }
}

export const values = ({ configOptions }) =>
  Object.fromEntries(configOptions.map(({ configId, currentValue }) => [configId, currentValue]));

/** The text of a message with a chunk more, or with the blocks that it has now. */
function said(known, content) {
  return Array.isArray(content) ? content.map(({ text }) => text).join("") : known + content.text;
}
