import { readFileSync } from "node:fs";
import { array, assert, constantFrom, integer, property, tuple } from "fast-check";
import { expect, it } from "vitest";
import { type NextClaim, Scheduler } from "../../src/delivery/scheduler.ts";
import {
  BLOCKERS,
  type Readiness,
  READINESS_CHANGES,
  type SubscriptionState,
} from "../../src/delivery/subscription-state.ts";
import { NO_SETTINGS, type SubscriptionSettings } from "../../src/domain/subscription-settings.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import type { AttemptResult, Claim, RecordClaim } from "../../src/store/queue.ts";

const MAX_IN_FLIGHT = 5;
/** What a subscription may be changed to. */
const SETTINGS: readonly SubscriptionSettings[] = [
  NO_SETTINGS,
  { ...NO_SETTINGS, ordered: true },
  { ...NO_SETTINGS, rate_limit: 5 },
  { ...NO_SETTINGS, max_in_flight: 1 },
  { ...NO_SETTINGS, rate_limit: 0.5, ordered: true },
];

/** A scheduler with two subscriptions, all that happens to it, and what must hold at all times. */
class Model {
  readonly #scheduler = new Scheduler(MAX_IN_FLIGHT, 3);
  readonly #settings: SubscriptionSettings[];
  readonly #subs: SubscriptionState[] = [];
  readonly #running: (NextClaim & { readonly bytes: number })[] = [];
  readonly #results: AttemptResult[] = [];
  readonly #awaitingFilter = new Set<SubscriptionState>();
  /** Subscriptions that events being recorded may be leased for. */
  readonly #reserved: RecordClaim[] = [];
  /** Leased, and not yet started, excluded or released. */
  readonly #open = new Set<number>();
  #isClaiming = false;
  #nowMs = 1_000_000;
  #deliveries = 0;

  readonly actions = {
    request: () => {
      if (this.#isClaiming) return;
      this.#scheduler.claims.isWanted(this.#nowMs);
      this.#isClaiming = this.#scheduler.claims.request(this.#nowMs, 60_000) !== undefined;
    },
    claimed: (which: number, count: number) => {
      if (!this.#isClaiming) return;
      this.#isClaiming = false;
      const claims = Array.from({ length: count }, () => this.#claim(which));
      this.#scheduler.leased({ claims, nextDueAtMs: undefined, limitedTiers: [0] }, this.#nowMs);
    },
    reserved: () => {
      const reserved = this.#scheduler.reserve("a", this.#nowMs, 60_000);
      if (reserved === undefined) return;
      for (const id of reserved.subscriptions) {
        const sub = this.#subs[id]!;
        expect(sub.hasBacklog, "reserved for one with older ones due").toBe(false);
      }
      this.#reserved.push(reserved);
    },
    recorded: (_which: number, count: number) => {
      const reserved = this.#reserved.shift();
      if (reserved === undefined) return;
      // Of some the store finds that they may not be sent to.
      const claims = count === 0 ? [] : reserved.subscriptions.map((id) => this.#claim(id));
      this.#scheduler.recorded(reserved, claims, this.#nowMs);
    },
    started: () =>
      this.#next((next) => {
        const { claim } = next;
        this.#close(claim);
        this.#running.push({ ...next, bytes: this.#scheduler.start(next, this.#nowMs) });
      }),
    excluded: () =>
      this.#next((next) => {
        this.#close(next.claim);
        this.#scheduler.exclude(next);
        this.#results.push(resultOf(next.claim, this.#nowMs, { ending: "filtered" }));
      }),
    awaitFilter: () =>
      this.#next((next) => {
        this.#awaitingFilter.add(next.sub);
        this.#scheduler.awaitFilter(next);
      }),
    filterReady: () => {
      for (const sub of this.#awaitingFilter) this.#scheduler.filterReady(sub);
      this.#awaitingFilter.clear();
    },
    answered: (which: number) => this.#end(which, { statusCode: 200, ending: "delivered" }),
    unanswered: (which: number) => this.#end(which, { errorCode: "timeout", ending: "failed" }),
    throttled: (which: number) => this.#end(which, { statusCode: 429, ending: "failed" }, 500),
    stored: () => {
      for (const result of this.#results.splice(0)) {
        this.#scheduler.stored(result, { kind: "stored", state: "pending" });
      }
    },
    changed: (which: number, to: number) => {
      const settings = SETTINGS[to % SETTINGS.length]!;
      this.#settings[which] = settings;
      this.#scheduler.changed({ rowid: which, ...settings } as unknown as Subscription);
    },
    passed: (_which: number, steps: number) => {
      this.#nowMs += steps * 60;
    },
  };

  /** @param settings of the subscriptions at first, as indexes of `SETTINGS` */
  constructor(settings: readonly number[]) {
    this.#settings = settings.map((index) => SETTINGS[index]!);
    // One attempt of each, so that both are known.
    for (const which of [0, 1]) {
      this.actions.request();
      this.actions.claimed(which, 1);
      const next = this.#scheduler.next(this.#nowMs)!;
      this.#subs.push(next.sub);
      this.actions.started();
      this.actions.answered(which);
    }
    this.actions.stored();
  }

  /** Answers the readiness of both before and after it. */
  do(name: keyof Model["actions"], which: number, count: number): [Readiness, Readiness][] {
    const before = this.#subs.map((sub) => sub.readiness(this.#nowMs));
    this.actions[name](which, count);
    for (const { deliveryId } of this.#scheduler.takeReleased()) {
      expect(this.#open.delete(deliveryId), "released once").toBe(true);
    }
    const { inFlight, buffered } = this.#scheduler;
    expect([inFlight, buffered]).toEqual([this.#running.length, this.#open.size]);
    expect(inFlight).toBeLessThanOrEqual(MAX_IN_FLIGHT);
    return this.#subs.map((sub, index) => [before[index]!, sub.readiness(this.#nowMs)]);
  }

  /** Lets all go on that waits; then each claim must come to its end. */
  settle(): void {
    while (this.#reserved.length > 0) this.do("recorded", 0, 0);
    for (let round = 0; round < 100 && this.#open.size + this.#running.length > 0; round += 1) {
      this.do("filterReady", 0, 0);
      this.do("stored", 0, 0);
      for (let step = 0; step < 8; step += 1) this.do("started", 0, 0);
      for (const which of [0, 1]) this.do("answered", which, 0);
      this.do("passed", 0, 2);
    }
    this.do("stored", 0, 0);
    expect([this.#open.size, this.#running.length]).toEqual([0, 0]);
    for (const sub of this.#subs) expect(sub.leased).toBe(0);
  }

  #claim(which: number): Claim {
    this.#deliveries += 1;
    this.#open.add(this.#deliveries);
    return {
      deliveryId: this.#deliveries,
      claimId: 1,
      subscription: { subscriptionId: which, settings: this.#settings[which] },
      event: { action: "a", payload: Buffer.from("1") },
    } as unknown as Claim;
  }

  #next(use: (next: NextClaim) => void): void {
    const next = this.#scheduler.next(this.#nowMs);
    if (next !== undefined) use(next);
  }

  #close({ deliveryId }: Claim): void {
    expect(this.#open.delete(deliveryId), "used once").toBe(true);
  }

  #end(which: number, ending: Partial<AttemptResult>, retryAfterMs?: number): void {
    const index = this.#running.findIndex(({ sub }) => sub.subscriptionId === which);
    if (index < 0) return;
    const { sub, claim, bytes } = this.#running.splice(index, 1)[0]!;
    const throttle = retryAfterMs === undefined ? undefined : { retryAfterMs };
    const ended = resultOf(claim, this.#nowMs, ending);
    this.#results.push(this.#scheduler.ended(sub, bytes, ended, throttle, this.#nowMs));
  }
}

function resultOf(
  { deliveryId, claimId }: Claim,
  nowMs: number,
  ending: Partial<AttemptResult>,
): AttemptResult {
  return { deliveryId, claimId, startedAtMs: nowMs, durationMs: 1, ending: "delivered", ...ending };
}

const NAMES = Object.keys(new Model([0, 0]).actions) as (keyof Model["actions"])[];
const OFTEN = ["request", "claimed", "started", "started", "answered", "passed"] as const;

it("keeps its promises whatever happens, and readiness changes only as its table says", () => {
  const seen = new Set<string>();
  const note = (pairs: readonly [Readiness, Readiness][]): void => {
    for (const [from, to] of pairs) if (from !== to) seen.add(`${from} --> ${to}`);
  };
  // Too rare to be left to chance: the limit is halved while the rate or the filter keeps it from starting one.
  const halved = [
    "started",
    "answered",
    "passed",
    "started",
    "answered",
    "passed",
    "started",
    "passed",
    "started",
  ] as const;
  for (const [settings, ...names] of [
    [2, ...halved, "request", "unanswered", "request"],
    [0, ...halved, "awaitFilter", "unanswered", "filterReady"],
  ] as const) {
    const model = new Model([settings, settings]);
    for (const name of ["passed", "request", "claimed", ...names] as const) {
      note(model.do(name, 0, name === "claimed" ? 6 : 4));
    }
  }
  const setting = integer({ min: 0, max: SETTINGS.length - 1 });
  const steps = array(
    tuple(constantFrom(...NAMES, ...OFTEN), integer({ min: 0, max: 1 }), integer({ min: 0, max: 6 })),
    {
      minLength: 20,
      maxLength: 150,
    },
  );
  assert(
    property(tuple(setting, setting), steps, (settings, actions) => {
      const model = new Model(settings);
      for (const [name, which, count] of actions) note(model.do(name, which, count));
      model.settle();
    }),
    { numRuns: 400, seed: 7 },
  );
  expect([...seen].toSorted()).toEqual(
    changes()
      .map((line) => line.replace(/:.*/, ""))
      .toSorted(),
  );
});

/** The lines of the table, as the diagram has them. */
function changes(): string[] {
  return Object.entries(READINESS_CHANGES).flatMap(([from, to]) =>
    Object.entries(to).map(([state, event]) => `${from} --> ${state}: ${event}`),
  );
}

const CONTRIBUTING = readFileSync(new URL("../../CONTRIBUTING.md", import.meta.url), "utf8");

it("is drawn in CONTRIBUTING.md as the tables have it", () => {
  const diagrams = CONTRIBUTING.match(/^ {2}\w+ --> \w+: .*$/gm)!.map((line) => line.trim());
  const states = new Set(Object.keys(READINESS_CHANGES));
  expect(diagrams.filter((line) => states.has(line.split(" ")[0]!))).toEqual(changes());
  for (const [blocker, { releases, rejectsClaims }] of Object.entries(BLOCKERS)) {
    const row = CONTRIBUTING.split("\n").find((line) => line.startsWith(`| \`${blocker}\` |`));
    expect(row, blocker).toMatch(new RegExp(`\\| ${releases} \\| ${rejectsClaims ? "yes" : "no"} \\|$`));
  }
});
