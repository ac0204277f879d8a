// @ts-check
// Checks the types of the page, which are in its comments: in a copy, where the libraries are their declarations.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** @param {string} name */
const path = (name) => fileURLToPath(new URL(name, import.meta.url));

const copy = path('node_modules/.types/');
rmSync(copy, { recursive: true, force: true });
mkdirSync(copy, { recursive: true });
cpSync(path('../page'), `${copy}page`, { recursive: true, filter: (from) => !from.includes('/page/lib/') });
cpSync(path('types/lib'), `${copy}page/lib`, { recursive: true });
for (const folder of ['unit', 'browser']) cpSync(path(folder), `${copy}page-tests/${folder}`, { recursive: true });
const options = {
  allowJs: true, checkJs: true, noEmit: true, strict: true, skipLibCheck: true, target: 'esnext', module: 'esnext',
  moduleResolution: 'bundler', lib: ['esnext', 'dom', 'dom.iterable'], types: ['node'],
};
writeFileSync(`${copy}tsconfig.json`, JSON.stringify({ compilerOptions: options, include: ['page', 'page-tests'] }));
const tsc = spawnSync(path('node_modules/.bin/tsc'), ['--project', copy], { stdio: 'inherit' });
process.exit(tsc.status ?? 1);
