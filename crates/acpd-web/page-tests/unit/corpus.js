// @ts-check
// The corpus of journals that the fold in Rust is tested with.

import { readFileSync, readdirSync } from 'node:fs';

const folder = new URL('../../../acpd-view/fixtures/blocks/', import.meta.url);

/** All journals: their name, session, messages and blocks. */
export const journals = readdirSync(folder).filter((name) => name.endsWith('.jsonl')).sort().map((name) => {
  const lines = readFileSync(new URL(name, folder), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
  const blocks = JSON.parse(readFileSync(new URL(name.replace('.jsonl', '.blocks.json'), folder), 'utf8'));
  const entries = lines.filter((line) => line.params._meta?._acpd?.seq !== undefined && line.id === undefined)
    .map((line) => ({ seq: line.params._meta._acpd.seq, line }));
  return { name, session: lines[0].params.sessionId, lines, entries, blocks };
});
