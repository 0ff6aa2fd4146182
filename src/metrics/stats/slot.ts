// What happened in some time, as how often each code came. A code is a series and a measure of it: a number, so that counting
// is one write to a typed array, and sorting brings the codes of a series together.

const MEASURE_BITS = 10;
const MEASURES = 1 << MEASURE_BITS;

/** What is counted of a series. The last three are followed by their buckets, see `domain/stats/histogram.ts`. */
export const MEASURE = {
  published: 0,
  refused: 1,
  failed: 2,
  latency: 256,
  /** An attempt that delivered, by how long it took. */
  delivered: 512,
  failedAttempt: 768,
} as const;

/** Series there may be at once. */
export const MAX_SERIES = 2 ** (32 - MEASURE_BITS);

export function codeOf(series: number, measure: number): number {
  return series * MEASURES + measure;
}

export function seriesOf(code: number): number {
  return code >>> MEASURE_BITS;
}

export function measureOf(code: number): number {
  return code & (MEASURES - 1);
}

export interface Slot {
  /** Ascending, each once. */
  readonly codes: Uint32Array;
  /** How often each came. */
  readonly counts: Uint32Array;
}

export const EMPTY_SLOT: Slot = { codes: new Uint32Array(0), counts: new Uint32Array(0) };

/** @param codes in any order; they are sorted in place */
export function slotOf(codes: Uint32Array): Slot {
  if (codes.length === 0) return EMPTY_SLOT;
  codes.sort();
  let distinct = 1;
  for (let at = 1; at < codes.length; at += 1) if (codes[at] !== codes[at - 1]) distinct += 1;
  const slot = { codes: new Uint32Array(distinct), counts: new Uint32Array(distinct) };
  let place = -1;
  for (let at = 0; at < codes.length; at += 1) {
    if (at === 0 || codes[at] !== codes[at - 1]) slot.codes[(place += 1)] = codes[at]!;
    slot.counts[place]! += 1;
  }
  return slot;
}

/** Both together. */
export function merged(left: Slot, right: Slot): Slot {
  if (left.codes.length === 0) return right;
  if (right.codes.length === 0) return left;
  const most = left.codes.length + right.codes.length;
  const codes = new Uint32Array(most);
  const counts = new Uint32Array(most);
  let length = 0;
  for (let l = 0, r = 0; l < left.codes.length || r < right.codes.length; length += 1) {
    const leftCode = left.codes[l] ?? Infinity;
    const rightCode = right.codes[r] ?? Infinity;
    codes[length] = Math.min(leftCode, rightCode);
    if (leftCode <= rightCode) counts[length]! += left.counts[l++]!;
    if (rightCode <= leftCode) counts[length]! += right.counts[r++]!;
  }
  return { codes: codes.slice(0, length), counts: counts.slice(0, length) };
}
