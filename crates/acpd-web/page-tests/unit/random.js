// @ts-check
// Numbers that are the same for the same seed.

/** @param {number} seed @returns {(below: number) => number} */
export function random(seed) {
  let state = seed * 2654435761 >>> 0;
  return (below) => {
    state = Math.imul(state ^ (state >>> 15), 2246822519) >>> 0;
    state = (state + 0x9e3779b9) >>> 0;
    const mixed = Math.imul(state ^ (state >>> 13), 3266489917) >>> 0;
    return below > 0 ? ((mixed ^ (mixed >>> 16)) >>> 0) % below : 0;
  };
}
