import { LRUCache } from "lru-cache";
import type { StatsCounts } from "../../metrics/stats/stats-counts.ts";
import type { StatsSteps, StatsStore, StatsTotals, StoredStep, StoredTotal } from "../../store/stats.ts";

const MAX_READS = 64;
/** Longer answers, of some 500 bytes each, are read again. */
const MAX_RECORDS = 2_000;

type Records = readonly (StoredStep | StoredTotal)[];

/** Reads of stored figures. Dashboards ask for the same again and again, so answers are kept until more is stored. */
export class StoredReads {
  readonly #store: Pick<StatsStore, "steps" | "totals">;
  readonly #stats: StatsCounts;
  readonly #reads = new LRUCache<string, Promise<Records>>({ max: MAX_READS });
  /** The answers are from after so many times. */
  #stores = 0;

  constructor(store: Pick<StatsStore, "steps" | "totals">, stats: StatsCounts) {
    this.#store = store;
    this.#stats = stats;
  }

  steps(query: StatsSteps): Promise<readonly StoredStep[]> {
    return this.#read(query, () => this.#store.steps(query)) as Promise<readonly StoredStep[]>;
  }

  totals(query: StatsTotals): Promise<readonly StoredTotal[]> {
    return this.#read(query, () => this.#store.totals(query)) as Promise<readonly StoredTotal[]>;
  }

  #read(query: object, read: () => Promise<Records>): Promise<Records> {
    if (this.#stores !== this.#stats.stores) this.#reads.clear();
    this.#stores = this.#stats.stores;
    const key = JSON.stringify(query);
    const known = this.#reads.get(key);
    if (known !== undefined) return known;
    const forget = (): void => {
      if (this.#reads.peek(key) === reading) this.#reads.delete(key);
    };
    const reading = read();
    this.#reads.set(key, reading);
    reading.then((records) => records.length > MAX_RECORDS && forget(), forget);
    return reading;
  }
}
