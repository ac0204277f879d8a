// @ts-check
// Notifications while the page is closed. Three parties are involved: the browser,
// which asks its user, its push service, and acpd's server.

import { kept } from './store.js';

/** @typedef {import('./store.js').Store} Store */
/** The state of notifications, or why they cannot be turned on. @typedef {{isOn: boolean, why?: string}} State */

/** @param {Store} store @param {'GET' | 'POST' | 'DELETE'} method @param {object} [body] */
const ask = (store, method, body) => fetch('/push', {
  method, headers: { authorization: `Bearer ${store.key}`, 'content-type': 'application/json' }, ...(body && { body: JSON.stringify(body) }),
});

/** The server's key for subscriptions; throws the reason if there is none. @param {Store} store @returns {Promise<string>} */
async function keyOf(store) {
  const answer = await ask(store, 'GET');
  const told = await answer.json();
  if (!answer.ok) throw new Error([told.error, told.hint].filter(Boolean).join('; '));
  return told.key;
}

/** @param {Store} store @returns {Promise<State>} */
export async function pushState(store) {
  if (!store.me.push) return { isOn: false, why: 'This needs TLS between this browser and the server.' };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (!worker?.pushManager) {
    const isApple = /iPhone|iPad/.test(navigator.userAgent);
    return { isOn: false, why: isApple ? 'Put the page on the home screen first, and open it there.' : 'This browser has no notifications for this page.' };
  }
  if (Notification.permission === 'denied') return { isOn: false, why: 'The browser was told to refuse notifications of this page.' };
  return { isOn: kept.get('push') !== undefined && await worker.pushManager.getSubscription() !== null };
}

/** Turns notifications on, for which the browser asks the user. @param {Store} store */
export async function turnOn(store) {
  const key = await keyOf(store);
  if (await Notification.requestPermission() !== 'granted') throw new Error('the browser does not allow it');
  const worker = await navigator.serviceWorker.ready;
  // A subscription for another key is useless.
  await (await worker.pushManager.getSubscription())?.unsubscribe();
  const made = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const answer = await ask(store, 'POST', made.toJSON());
  if (!answer.ok) {
    await made.unsubscribe();
    throw new Error((await answer.json()).error ?? 'the server did not take it');
  }
  kept.set('push', made.endpoint);
}

/** @param {Store} store */
export async function turnOff(store) {
  kept.set('push', undefined);
  await ask(store, 'DELETE');
  const worker = await navigator.serviceWorker.getRegistration();
  await (await worker?.pushManager.getSubscription())?.unsubscribe();
}
