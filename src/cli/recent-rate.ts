/** Long enough not to jump with each batch, short enough to show a server that slows down. */
const WINDOW_MS = 10_000;
/** Apart from each other at least, so that few are kept however often is looked. */
const STEP_MS = 250;

/** How fast a count grows, over the last ten seconds. */
export class RecentRate {
  readonly #nowMs: () => number;
  /** Oldest first. */
  #marks: { readonly atMs: number; readonly count: number }[] = [];
  #perS = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** 0 while too little is known. */
  get perS(): number {
    return this.#perS;
  }

  /** The first one is where it begins. */
  reach(count: number): void {
    const atMs = this.#nowMs();
    const last = this.#marks.at(-1);
    if (last !== undefined && atMs - last.atMs < STEP_MS) return;
    this.#marks.push({ atMs, count });
    while ((this.#marks[1]?.atMs ?? atMs) < atMs - WINDOW_MS) this.#marks.shift();
    const first = this.#marks[0]!;
    if (atMs > first.atMs) this.#perS = ((count - first.count) * 1_000) / (atMs - first.atMs);
  }
}
