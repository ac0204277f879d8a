// @ts-check
// Preact's elements in template strings.

import htm from '../lib/htm.js';
import { Fragment, h } from '../lib/preact.js';

export const html = htm.bind(h);
export { Fragment };
