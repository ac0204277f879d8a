// @ts-check
// The commands in the input of a tool call, each as it would run: of `bash -lc SCRIPT` the script. The same as
// `commands_of` of `acpd-policy`, as far as showing needs it.

const SHELLS = ['sh', 'bash', 'dash', 'zsh', 'ksh', 'mksh', 'ash', 'fish', 'rbash'];
const FOLDERS = ['/bin/', '/usr/bin/', '/usr/local/bin/', '/opt/homebrew/bin/', '/run/current-system/sw/bin/'];

/** @param {string} name */
const plain = (name) => name.replaceAll('_', '').toLowerCase();
/** @param {string} line */
const trimmed = (line) => line.replace(/^[ \t\n]+|[ \t\n]+$/g, '');

/** The words of a line, as a shell splits it; nothing if a quote is open. @param {string} line */
function split(line) {
  /** @type {string[]} */
  const words = [];
  /** @type {string | undefined} */
  let word;
  for (let at = 0; at < line.length; at++) {
    const char = line[at];
    if (' \t\n'.includes(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === '#' && word === undefined) {
      while (at + 1 < line.length && line[at + 1] !== '\n') at++;
    } else if (char === "'") {
      const end = line.indexOf("'", at + 1);
      if (end < 0) return undefined;
      word = (word ?? '') + line.slice(at + 1, end);
      at = end;
    } else if (char === '"') {
      word ??= '';
      for (at++; line[at] !== '"'; at++) {
        if (at >= line.length) return undefined;
        if (line[at] === '\\' && '$`"\\\n'.includes(line[at + 1] ?? 'x')) {
          at++;
          if (line[at] === '\n') continue;
        }
        word += line[at];
      }
    } else if (char === '\\') {
      at++;
      if (at >= line.length) return undefined;
      if (line[at] !== '\n') word = (word ?? '') + line[at];
    } else {
      word = (word ?? '') + char;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** @param {string} word */
const quoted = (word) => (/^[A-Za-z0-9+\-./:@_\]]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The script, if it is all that runs and its shell is a known one. @param {string[]} words */
function script([shell, ...rest]) {
  const base = shell?.split('/').pop() ?? '';
  const folder = FOLDERS.find((folder) => shell?.startsWith(folder)) ?? '';
  const name = shell?.slice(folder.length) ?? '';
  if (!SHELLS.includes(base) || name === 'fish' || !SHELLS.includes(name)) return undefined;
  let flags = 0;
  while (/^-[A-Za-z]*$/.test(rest[flags] ?? '.')) flags++;
  if (!rest[flags - 1]?.endsWith('c') || rest.length !== flags + 1) return undefined;
  return trimmed(rest[flags]) || undefined;
}

/** @param {unknown} list @returns {string[] | undefined} */
const words = (list) =>
  Array.isArray(list) && list.every((item) => typeof item === 'string') ? list : undefined;

/** @typedef {{line: string, runs: string}} Command */

/** @param {string} raw @returns {Command[]} */
function ofLine(raw) {
  const line = trimmed(raw);
  const parts = /[$\p{Cc}]/u.test(line) ? undefined : split(line);
  return line ? [{ line, runs: (parts && script(parts)) ?? line }] : [];
}

/** @param {unknown} value @param {boolean} several @returns {Command[]} */
function read(value, several) {
  if (typeof value === 'string') return ofLine(value);
  if (several && Array.isArray(value)) return value.flatMap((item) => read(item, false));
  const list = words(value);
  if (!list || list.length === 0 || list.some((word) => word.includes('\0'))) return [];
  const line = list.map(quoted).join(' ');
  return [{ line, runs: script(list) ?? line }];
}

/** @param {unknown} input @returns {string[]} */
export function commandsOf(input) {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return [];
  const members = Object.entries(input).filter(([, value]) => value !== null);
  /** @param {string[]} names */
  const of = (names) => members.filter(([name]) => names.includes(plain(name)));
  const several = [...of(['command', 'cmd']), ...of(['commands'])];
  const args = of(['args']);
  const list = words(args[0]?.[1]);
  if (several.length === 1 && args.length === 1 && typeof several[0][1] === 'string' && list) {
    const program = ofLine(`${several[0][1]} ${list.map(quoted).join(' ')}`);
    if (program.length > 0) return program.map((command) => command.runs);
  }
  const seen = new Set();
  const all = several.flatMap(([name, value]) => read(value, plain(name) === 'commands'));
  return all.filter(({ line }) => !seen.has(line) && seen.add(line)).map((command) => command.runs);
}

/** The lines of commands, each line whole. @param {string[]} commands */
export const linesOf = (commands) =>
  commands.flatMap((text) => (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n'));
