// @ts-check
// Escapes text from outside for people, as `acpd-api/src/escape.rs` does: characters that are invisible or change
// the direction of writing are shown by their numbers, such as `<U+202E>`.

const JOINERS = '\u200c\u200d';
const SELECTORS = '\ufe0e\ufe0f';
/** Makes a key of the digit before it, with a selector between the two. */
const KEYCAP = '\u20e3';
const INVISIBLE =
  /[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]/u;
const PRINTABLE = /[ \p{L}\p{M}\p{N}\p{P}\p{S}]/u;
/** Text that is the same in every form, as most is. */
const PLAIN = /^(?:[ -;=-~]|[\u00a1-\u00ac\u00ae-\u02ff\u0400-\u0482])*$/;
const SUSPECT =
  /<|[^ -~\p{L}\p{M}\p{N}\p{P}\p{S}]|[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]/gu;
const SPACE = /\p{White_Space}/u;

/** @param {string} char */
const isSeen = (char) => PRINTABLE.test(char) && !INVISIBLE.test(char);

/** @param {string} char @param {string} before @param {string} after @param {boolean} isProse */
function stays(char, before, after, isProse) {
  if (char === '<') return isProse || !after.startsWith('U+');
  if (char === '\n') return isProse;
  if (char === '\t') return true;
  if (JOINERS.includes(char)) return isProse;
  if (SELECTORS.includes(char)) {
    const isSymbol = before > '\x7f' && !/[\p{Alphabetic}\p{N}]/u.test(before) && isSeen(before);
    return isProse || isSymbol || after.startsWith(KEYCAP);
  }
  if (char === '\u2028' || char === '\u2029') return false;
  if (isProse && SPACE.test(char) && !/\p{Cc}/u.test(char)) return true;
  return isSeen(char);
}

/** @param {string} text @param {boolean} isProse */
function escaped(text, isProse) {
  if (PLAIN.test(text)) return text;
  return text.replace(SUSPECT, (char, at) => {
    const before = [...text.slice(Math.max(0, at - 2), at)].pop() ?? '';
    const after = text.slice(at + char.length, at + char.length + 2);
    if (stays(char, before, after, isProse)) return char;
    // A carriage return before a newline has no effect.
    if (char === '\r' && isProse && after.startsWith('\n')) return '';
    return `<U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`;
  });
}

/** Running text. @param {string} text */
export const prose = (text) => escaped(text, true);

/** A line of a command or a file. @param {string} text */
export const verbatim = (text) => escaped(text, false);

/** Names, titles, paths, messages: on one line, without white space around it. @param {string} text */
export const oneLine = (text) =>
  text.split(/[ \t\n\r]+/).filter(Boolean).map((word) => escaped(word, false)).join(' ');

/** A page that an agent wants opened, in one line. Its host comes first: a part before an `@` in an address looks like
 * one. @param {{message?: string, url?: string}} asked */
export function page({ message = '', url = '' }) {
  const authority = /:\/\/([^/\\?#]*)/.exec(url)?.[1] ?? '';
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  return host ? `a page on ${oneLine(host)}: ${oneLine(message)} (${oneLine(url)})` : `${oneLine(url)}: ${oneLine(message)}`;
}
