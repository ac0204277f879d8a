// @ts-check
// The search in all conversations.

import { lookUp } from '../lookup.js';
import { oneLine } from '../text/escape.js';
import { age } from '../text/human.js';
import { useEffect, useRef, useState } from '../lib/hooks.js';
import { hashOf } from '../store.js';
import { html } from './html.js';
import { folderOf, nameOf } from './inbox.js';
import { Top, Trouble } from './parts.js';

/** @typedef {import('../lookup.js').Json} Json */
/** @typedef {import('../store.js').Store} Store */

/** @type {Record<string, string>} */
const SPEAKERS = { user: 'you', agent: 'agent', tool: 'tool' };

/** @param {{store: Store}} props */
export function Search({ store }) {
  const [words, setWords] = useState('');
  const [hits, setHits] = useState(/** @type {Json[] | undefined} */ (undefined));
  const [trouble, setTrouble] = useState(/** @type {{text: string, hint?: string} | undefined} */ (undefined));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  // The user opened the search, by a key or a press.
  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    if (!words.trim()) {
      setHits(undefined);
      return undefined;
    }
    let isWanted = true;
    const timer = setTimeout(() => {
      store.search(words).then((found) => {
        if (isWanted) setHits(found);
        setTrouble(undefined);
      }, (error) => isWanted && setTrouble({ text: error.message, hint: error.hint }));
    }, 200);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [words]);
  return html`<section class="dialog"><${Top} title="Search" />
    <div class="form"><input ref=${field} type="search" value=${words} aria-label="words to find" placeholder="What was said, by you and by agents"
      onInput=${(/** @type {any} */ e) => setWords(e.target.value)} />
      ${trouble && html`<${Trouble} text=${trouble.text} hint=${trouble.hint} />`}
      <ul class="hits" aria-live="polite">${hits?.map(({ session, seq, at, by, snippet }) => html`<li key=${`${session.sessionId}/${seq}`}>
        <a class="entry" href=${hashOf({ view: 'session', agent: session.agent, id: session.sessionId, seq, words: snippet.find((/** @type {Json} */ part) => part.hit)?.text })}>
          <span class="name">${nameOf(session)}</span><span class="who">${lookUp(SPEAKERS, by) ?? by} · ${oneLine(session.agent)}</span><span class="age">${age(store.now - at)}</span>
          <span class="news">${snippet.map((/** @type {Json} */ part) => (part.hit ? html`<mark>${oneLineKeepingEnds(part.text)}</mark>` : oneLineKeepingEnds(part.text)))}</span>
          <span class="where">${folderOf(session.cwd, store.daemon)}</span></a></li>`)}</ul>
      ${hits?.length === 0 && html`<p class="empty">Nothing was found. A turn can be found when it has ended.</p>`}</div></section>`;
}

/** @param {string} text */
const oneLineKeepingEnds = (text) => `${/^\s/.test(text) ? ' ' : ''}${oneLine(text)}${/\s$/.test(text) ? ' ' : ''}`;
