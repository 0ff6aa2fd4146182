import { LRUCache } from "lru-cache";
import type { StatsSteps, StatsStore, StatsTotals, StoredStep, StoredTotal } from "../../store/history.ts";
import type { StatsRecorder } from "./recorder.ts";

const MAX_READS = 64;
/** Longer answers, of some 500 bytes each, are read again. */
const MAX_RECORDS = 2_000;

type Records = readonly (StoredStep | StoredTotal)[];

/** Reads of stored figures. Dashboards ask for the same again and again, so answers are kept until more is folded. */
export class StoredReads {
  readonly #store: Pick<StatsStore, "steps" | "totals">;
  readonly #recorder: Pick<StatsRecorder, "folds">;
  readonly #reads = new LRUCache<string, Promise<Records>>({ max: MAX_READS });
  /** The answers are from after so many times. */
  #folds = 0;

  constructor(store: Pick<StatsStore, "steps" | "totals">, recorder: Pick<StatsRecorder, "folds">) {
    this.#store = store;
    this.#recorder = recorder;
  }

  steps(query: StatsSteps): Promise<readonly StoredStep[]> {
    return this.#read(query, () => this.#store.steps(query)) as Promise<readonly StoredStep[]>;
  }

  totals(query: StatsTotals): Promise<readonly StoredTotal[]> {
    return this.#read(query, () => this.#store.totals(query)) as Promise<readonly StoredTotal[]>;
  }

  #read(query: object, read: () => Promise<Records>): Promise<Records> {
    if (this.#folds !== this.#recorder.folds) this.#reads.clear();
    this.#folds = this.#recorder.folds;
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
