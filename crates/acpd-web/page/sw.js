// @ts-check
// The service worker: opens the last version of the page without a connection.
//
// Each version of the page has its files below an address of its own (`/v-…/`), so a running page gets files of its
// version only. The shell comes from the server, and from here if the server does not answer.

/** The build of the program fills in both. */
const VERSION = 'v-0';
/** @type {string[]} */
const FILES = [];

const worker = /** @type {any} */ (globalThis);
/** Longest wait for the server (ms). */
const PATIENCE = 3000;
const NAME = `acpd-${VERSION}`;
/** Files with the same address in every version. */
const FIXED = ['/', '/app.webmanifest', '/icon.svg', '/icon-needs.svg', '/icon-192.png'];

worker.addEventListener('install', (/** @type {any} */ event) => {
  const all = [...FIXED, ...FILES.map((name) => `/${VERSION}/${name}`)];
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(all)).then(() => worker.skipWaiting()));
});

worker.addEventListener('activate', (/** @type {any} */ event) => {
  const tidy = async () => {
    const others = (await caches.keys()).filter((name) => name.startsWith('acpd-') && name !== NAME);
    // A page of the version before may run.
    await Promise.all(others.slice(0, -1).map((name) => caches.delete(name)));
    await worker.clients.claim();
  };
  event.waitUntil(tidy());
});

worker.addEventListener('fetch', (/** @type {any} */ event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== 'GET' || origin !== location.origin) return;
  if (pathname.startsWith('/v-')) event.respondWith(ofVersion(request));
  else if (FIXED.includes(pathname)) event.respondWith(fixed(pathname, request));
});

// Only for a hidden page: a visible one shows the need itself.
worker.addEventListener('push', (/** @type {any} */ event) => {
  const { title, body, agent, session } = event.data.json();
  const hash = session ? `#/s/${encodeURIComponent(agent)}/${encodeURIComponent(session)}` : '#/';
  const tell = async () => {
    const pages = await worker.clients.matchAll({ type: 'window' });
    if (pages.some((/** @type {any} */ page) => page.focused)) return;
    await worker.registration.showNotification(title, { body, tag: hash, renotify: true, data: hash, icon: '/icon-192.png' });
  };
  event.waitUntil(tell());
});

worker.addEventListener('notificationclick', (/** @type {any} */ event) => {
  event.notification.close();
  const hash = event.notification.data;
  const open = async () => {
    const [page] = await worker.clients.matchAll({ type: 'window' });
    if (!page) return worker.clients.openWindow(`/${hash}`);
    page.postMessage({ hash });
    return page.focus();
  };
  event.waitUntil(open());
});

/** A file that never changes. @param {Request} request */
const ofVersion = async (request) => await caches.match(request) ?? fetch(request);

/** @param {string} pathname @param {Request} request */
async function fixed(pathname, request) {
  const kept = await (await caches.open(NAME)).match(pathname);
  if (!kept) return fetch(request);
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(PATIENCE) });
    // A proxy answers for a server that is away.
    return answer.status < 500 ? answer : kept;
  } catch {
    return kept;
  }
}
