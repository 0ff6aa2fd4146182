import { MAX_SERIES } from "./slot.ts";

/**
 * What is counted apart: the events of an action, or its deliveries to a subscription. Beyond `MAX_KEPT` at once new ones count
 * for their application as a whole.
 */
export interface Series {
  /** `""` for what belongs to none, such as a refused request that nobody could read. */
  readonly application: string;
  /** `""` for none. */
  readonly action: string;
  /** 0 for none. */
  readonly subscription: number;
  /** The minute in which it was last counted. */
  lastMinute: number;
  /** Of its last attempt that failed: a status or an error code. */
  lastError: string | undefined;
  lastErrorMs: number;
}

/** Far fewer than codes have room for, as each takes some 200 bytes. */
const MAX_KEPT = 100_000;
/** With those of applications as a whole. */
const MAX_ALL = Math.min(2 * MAX_KEPT, MAX_SERIES);

/** All series, by number. A number is given again once nothing holds it any more. */
export class SeriesTable {
  readonly #all: (Series | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #actions = new Map<string, number>();
  /** By subscription; most have one action. */
  readonly #deliveries = new Map<number, Map<string, number>>();
  readonly #applications = new Map<string, number>();

  get size(): number {
    return this.#all.length - this.#free.length;
  }

  get(number: number): Series | undefined {
    return this.#all[number];
  }

  /** The numbers in use are below this. */
  get end(): number {
    return this.#all.length;
  }

  /** Events of an action. */
  ofAction(action: string, application: string): number {
    return (
      this.#actions.get(action) ?? this.#add(this.#actions, action, { application, action, subscription: 0 })
    );
  }

  /** Deliveries of an action's events to a subscription. */
  ofDelivery(subscription: number, action: string, application: string): number {
    let known = this.#deliveries.get(subscription);
    const found = known?.get(action);
    if (found !== undefined) return found;
    if (known === undefined) {
      known = new Map();
      if (this.size < MAX_KEPT) this.#deliveries.set(subscription, known);
    }
    return this.#add(known, action, { application, action, subscription });
  }

  /** What belongs to no known action. */
  ofApplication(application: string): number {
    const found = this.#applications.get(application);
    if (found !== undefined) return found;
    const key = this.size < MAX_ALL ? application : "";
    return (
      this.#applications.get(key) ??
      this.#insert(this.#applications, key, { application: key, action: "", subscription: 0 })
    );
  }

  #add<K>(
    into: Map<K, number>,
    key: K,
    series: Pick<Series, "application" | "action" | "subscription">,
  ): number {
    if (this.size >= MAX_KEPT) return this.ofApplication(series.application);
    return this.#insert(into, key, series);
  }

  #insert<K>(
    into: Map<K, number>,
    key: K,
    series: Pick<Series, "application" | "action" | "subscription">,
  ): number {
    const number = this.#free.pop() ?? this.#all.length;
    this.#all[number] = { ...series, lastMinute: Infinity, lastError: undefined, lastErrorMs: -Infinity };
    into.set(key, number);
    return number;
  }

  /** Forgets those that were last counted before that minute. */
  forget(beforeMinute: number): void {
    for (const [number, series] of this.#all.entries()) {
      if (series === undefined || series.lastMinute >= beforeMinute) continue;
      const { application, action, subscription } = series;
      this.#all[number] = undefined;
      this.#free.push(number);
      if (subscription > 0) {
        const known = this.#deliveries.get(subscription);
        known?.delete(action);
        if (known?.size === 0) this.#deliveries.delete(subscription);
      } else if (action === "") this.#applications.delete(application);
      else this.#actions.delete(action);
    }
  }
}
