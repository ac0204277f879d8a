// @ts-check
// The heights of many rows, of which few were measured. Finds the top of a row and the row at a place, each in
// logarithmic time (a Fenwick tree).

export class Heights {
  /** @param {number[]} heights */
  constructor(heights) {
    this.heights = Float64Array.from(heights);
    this.sums = new Float64Array(heights.length + 1);
    for (let at = 1; at <= heights.length; at++) {
      this.sums[at] += heights[at - 1];
      const above = at + (at & -at);
      if (above <= heights.length) this.sums[above] += this.sums[at];
    }
  }

  get length() {
    return this.heights.length;
  }

  /** @param {number} at @param {number} height @returns {boolean} whether it has changed */
  set(at, height) {
    const more = height - this.heights[at];
    if (more === 0) return false;
    this.heights[at] = height;
    for (let node = at + 1; node < this.sums.length; node += node & -node) this.sums[node] += more;
    return true;
  }

  /** @param {number} at */
  top(at) {
    let sum = 0;
    for (let node = at; node > 0; node -= node & -node) sum += this.sums[node];
    return sum;
  }

  get total() {
    return this.top(this.length);
  }

  /** The row at a place: the last one that begins at it or above. @param {number} place */
  at(place) {
    let [node, rest] = [0, place];
    for (let step = 2 ** Math.floor(Math.log2(this.length || 1)); step >= 1; step /= 2) {
      if (node + step <= this.length && this.sums[node + step] <= rest) {
        node += step;
        rest -= this.sums[node];
      }
    }
    return Math.max(0, Math.min(node, this.length - 1));
  }
}

/** Most rows in the document. */
export const MOUNTED = 80;

/** The rows for the document: those on the screen and as much around them.
 * @param {Heights} heights @param {number} top @param {number} height of the screen @returns {[number, number]} */
export function visible(heights, top, height) {
  if (heights.length === 0) return [0, 0];
  const first = heights.at(Math.max(0, top - height));
  const last = heights.at(top + 2 * height) + 1;
  const middle = heights.at(top + height / 2);
  const from = Math.max(first, middle - MOUNTED / 2);
  return [from, Math.min(last, from + MOUNTED)];
}
