/**
 * Counts values by size. An observation takes a few nanoseconds, as it is made for every attempt and every commit; what
 * it comes to is only put into words when somebody asks.
 */
export class Histogram {
  /** Largest value of each bucket, ascending; one more bucket takes what is larger than all. */
  readonly bounds: readonly number[];
  /** Of each bucket by itself. */
  readonly counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  get sum(): number {
    return this.#sum;
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1;
    counts[bucket]! += 1;
    this.#sum += value;
  }
}
