// @ts-check
// Durations, sizes and numbers for people, as in `acpd-view/src/human.rs`.

/** In at most two units: `8s`, `3m`, `2h 5m`, `4d 1h`. @param {number} ms */
export function duration(ms) {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  const [minutes, hours, days] = [60, 3600, 86_400].map((unit) => Math.floor(seconds / unit));
  /** @param {number} big @param {string} unit @param {number} small @param {string} part */
  const two = (big, unit, small, part) => (small ? `${big}${unit} ${small}${part}` : `${big}${unit}`);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${minutes}m`;
  if (seconds < 86_400) return two(hours, 'h', minutes % 60, 'm');
  return two(days, 'd', hours % 24, 'h');
}

/** In one unit. @param {number} ms */
export const age = (ms) => duration(ms).split(' ')[0];

/** `512 B`, `1.5 KB`, `64 MB`. @param {number} size */
export function bytes(size) {
  let value = size;
  for (const unit of ['B', 'KB', 'MB', 'GB']) {
    if (unit !== 'B' && value < 10) return `${value.toFixed(1)} ${unit}`;
    if (value < 1000 || unit === 'GB') return `${value.toFixed(0)} ${unit}`;
    value /= 1024;
  }
  return '';
}

/** `999`, `1.5k`, `200k`, `1.2M`. @param {number} number */
export function count(number) {
  if (number < 1000) return `${number}`;
  const [value, unit] = number < 999_500 ? [number / 1e3, 'k'] : [number / 1e6, 'M'];
  return value < 9.95 ? `${value.toFixed(1)}${unit}` : `${value.toFixed(0)}${unit}`;
}

/** `$0.41`, `1.20 EUR`. @param {{amount: number, currency?: string} | undefined} cost */
export function money(cost) {
  if (!cost) return '';
  const amount = cost.amount.toFixed(cost.amount > 0 && cost.amount < 0.01 ? 4 : 2);
  return cost.currency === 'USD' ? `$${amount}` : `${amount} ${cost.currency ?? ''}`.trim();
}
