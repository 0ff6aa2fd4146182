import type { Clock } from "../runtime/clock.ts";
import type { Backlog } from "../store/backlog.ts";
import type { Store } from "../store/store.ts";
import { type Instruments, only, type Sample } from "./instruments.ts";

const KEPT_MS = 1_000;
const STATES = ["due", "busy", "paced", "waiting", "delivering", "held"] as const;

/** What is unfinished. Where the store cannot be asked there are no values, and all other metrics are told as ever. */
export function addBacklogMetrics(
  instruments: Instruments,
  store: Pick<Store, "countBacklog">,
  clock: Clock,
): void {
  const reading = new BacklogReading(store, clock);
  const samples = async (of: (backlog: Backlog, atMs: number) => readonly Sample[]) => {
    const read = await reading.read();
    return read === undefined ? [] : of(read.backlog, read.atMs);
  };
  instruments.gauge(
    {
      name: "evreg_backlog_deliveries",
      help: "Unfinished deliveries: due now, due behind others of their subscription that are being delivered (busy), due at a rate limit (paced), waiting for their time or turn, being delivered, held as their subscription is paused.",
    },
    () =>
      samples((backlog) => STATES.map((state) => ({ labels: { state }, value: backlog[state].deliveries }))),
  );
  instruments.gauge(
    {
      name: "evreg_backlog_oldest_age_seconds",
      help: "For how long the first of them has been due, or (delivering) under way; 0 without one.",
    },
    () =>
      samples((backlog, atMs) =>
        STATES.filter((state) => state !== "waiting").map((state) => {
          const { sinceMs = atMs } = backlog[state];
          return { labels: { state }, value: Math.max(0, atMs - sinceMs) / 1_000 };
        }),
      ),
  );
  instruments.gauge(
    {
      name: "evreg_backlog_counted_fully",
      help: "1 when all of the backlog was counted; 0 when there is at least as much as evreg_backlog_deliveries says.",
    },
    () => samples(({ isWhole }) => only(isWhole ? 1 : 0)),
  );
}

interface BacklogRead {
  readonly backlog: Backlog;
  readonly atMs: number;
}

/** Asks the store once for all who ask within a second. */
class BacklogReading {
  readonly #store: Pick<Store, "countBacklog">;
  readonly #clock: Clock;
  #latest: { readonly promise: Promise<BacklogRead | undefined>; readonly atMs: number } | undefined;
  #isUnderWay = false;

  constructor(store: Pick<Store, "countBacklog">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  read(): Promise<BacklogRead | undefined> {
    const nowMs = this.#clock.now();
    const age = nowMs - (this.#latest?.atMs ?? -Infinity);
    if (this.#latest !== undefined && (this.#isUnderWay || (age >= 0 && age < KEPT_MS))) {
      return this.#latest.promise;
    }
    const promise = this.#ask(nowMs);
    this.#latest = { promise, atMs: nowMs };
    return promise;
  }

  async #ask(nowMs: number): Promise<BacklogRead | undefined> {
    this.#isUnderWay = true;
    try {
      return { backlog: await this.#store.countBacklog(nowMs), atMs: nowMs };
    } catch {
      // Its condition is told by a metric of its own.
      return undefined;
    } finally {
      this.#isUnderWay = false;
    }
  }
}
