/**
 * The steps left for making one payload: a value, a few characters, part of a check. Counting instead of a clock keeps
 * the sample for a seed the same on every machine.
 */
export class Effort {
  #left: number;

  constructor(steps: number) {
    this.#left = steps;
  }

  get left(): number {
    return Math.max(0, this.#left);
  }

  /** @throws `EffortExceeded` */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new EffortExceeded();
  }
}

export class EffortExceeded extends Error {}
