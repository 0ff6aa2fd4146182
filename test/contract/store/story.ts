import { expect } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import type { DeliveryStatus } from "../../../src/domain/delivery.ts";
import type { Replay, ReplaySelection } from "../../../src/domain/replay.ts";
import { SERVICE_EVENT_NAMES, SERVICE_EVENT_SCHEMAS } from "../../../src/domain/service-events.ts";
import { BACKLOG_CAUSES } from "../../../src/domain/stats/stats.ts";
import { compileSchema } from "../../../src/schema/validate/compile.ts";
import type { SubscriptionPatch } from "../../../src/store/catalog.ts";
import type { ReplayRequest } from "../../../src/store/history.ts";
import type { AttemptEnding, AttemptResult, Claim } from "../../../src/store/queue.ts";
import { agreedBacklog, eventOf, type Fixture, NOW, recordedRowid, resultOf } from "./fixture.ts";

type Words = readonly string[];

/** How attempts end. */
const ENDINGS: Readonly<Record<string, readonly [AttemptEnding, Partial<AttemptResult>?]>> = {
  deliver: ["delivered", { statusCode: 200 }],
  fail: ["failed", { statusCode: 500 }],
  gone: ["gone", { statusCode: 410 }],
  interrupt: ["interrupted", { errorCode: "interrupted" }],
  return: ["never started"],
  filter: ["filtered"],
};

/** How the subscription is changed. */
const PATCHES: Readonly<Record<string, (word: string) => SubscriptionPatch>> = {
  pause: () => ({ active: false }),
  resume: () => ({ active: true }),
  move: () => ({ handler: "https://moved.example/" }),
  retries: (count) => ({ maxRetries: Number(count) }),
  schedule: (wait) => ({ settings: { retry_schedule: [msOf(wait)] } }),
  exhausted: (how) => ({ settings: { on_exhausted: how as "block" | "skip" } }),
  rate: (limit) => ({ settings: { rate_limit: Number(limit) } }),
  order: (by) => ({ settings: { ordered: by.startsWith("/") ? { key: by } : by === "whole" } }),
};

/** What is reported of events about evreg itself. */
const REPORTS = {
  failed: ["evreg.delivery.failed", "event_id"],
  blocked: ["evreg.subscription.blocked", "event_id"],
  deactivated: ["evreg.subscription.deactivated", "reason"],
} as const;

const LEASE_MS = 30_000;
const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** The milliseconds of `1h`, `59m58s` or `-2h`. */
function msOf(span: string): number {
  const parts = [...span.matchAll(/(\d+)(ms|s|m|h)/g)];
  if (parts.length === 0) throw new Error(`${span} is no length of time`);
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS_MS[unit!]!, 0);
  return span.startsWith("-") ? -ms : ms;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** The word behind another one; `undefined` where that is not there. */
function wordBehind(words: Words, word: string): string | undefined {
  const at = words.indexOf(word);
  return at === -1 ? undefined : words[at + 1];
}

/** The numbers before the first word that is none. */
function numbersIn(words: Words): readonly number[] {
  const end = words.findIndex((word) => !/^\d+$/.test(word));
  return (end === -1 ? words : words.slice(0, end)).map(Number);
}

interface PublishedEvent {
  readonly rowid: number;
  readonly payload: string;
  /** How many attempts of its delivery have ended. */
  attempts: number;
}

/**
 * What happens to the deliveries of one subscription, in steps such as `publish 2`, `claim 1`, `fail 1 for 1h`, `claim nothing until 1h`.
 * Events have the numbers in which they are published, and so have their deliveries. What a step may say is said where it is
 * done. Time passes in `wait` alone.
 */
export class Story {
  readonly #on: Fixture;
  readonly #events: PublishedEvent[] = [];
  /** What is leased, by the numbers of the events, and what was. */
  readonly #held = new Map<number, Claim>();
  readonly #lost: Claim[] = [];
  #action!: Action;
  /** Of the subscription. */
  #id = 0;
  #nowMs = NOW;
  #disableAfterMs = Number.MAX_SAFE_INTEGER;
  #replay: Replay | undefined;
  /** What happens now, and what stands in brackets behind it. */
  #step = "";
  #said = "";

  constructor(on: Fixture) {
    this.#on = on;
  }

  /** Does all steps. What is counted as unfinished then is what is listed. */
  async happen(steps: Words): Promise<void> {
    this.#action = await this.#on.action();
    this.#id = (await this.#on.subscription(this.#action)).rowid;
    for (const step of steps) {
      const [, all = "", said = ""] = /^(.*?)(?: \((.*)\))?$/.exec(step) ?? [];
      this.#step = step;
      this.#said = said;
      const [verb = "", ...words] = all.split(" ");
      await this.#act(verb, words);
    }
    await agreedBacklog(this.#on.queue, this.#nowMs, { subscription: this.#id });
  }

  async #act(verb: string, words: Words): Promise<void> {
    const [word = ""] = words;
    const [ending, patch] = [ENDINGS[verb], PATCHES[verb]];
    if (ending !== undefined) return this.#finish(words, ...ending);
    if (patch !== undefined) return this.#change(patch(word));
    switch (verb) {
      case "publish":
        return this.#publish(words);
      case "wait":
        this.#nowMs += msOf(word);
        return;
      case "claim":
        return this.#claim(words);
      case "drain":
        return this.#drain(words);
      case "release":
        return this.#release(words);
      case "retry":
      case "skip":
        return this.#request(verb, Number(word));
      case "refuse":
        return this.#refuse(words);
      case "start":
        return this.#startReplay(word);
      case "advance":
        return this.#advance(word);
      case "replay":
        return this.#replayAll(word, Number(words[1]));
      case "cancel":
        await this.#on.replays.cancel(this.#replay!.rowid, this.#nowMs);
        return;
      case "watched":
        return this.#watch();
      case "bind":
        this.#action = await this.#on.action(word);
        return this.#change({ action: word });
      case "disabled":
        this.#disableAfterMs = msOf(wordBehind(words, "after")!);
        return;
      case "delete":
        await this.#on.catalog.deleteSubscription(this.#id, this.#nowMs);
        return;
      default: {
        const [seen, wanted] = await this.#look(verb, words);
        expect(seen, this.#step).toEqual(wanted);
      }
    }
  }

  async #change(patch: SubscriptionPatch): Promise<void> {
    await this.#on.update(this.#id, patch, this.#nowMs);
  }

  /** `publish 2`, `publish a b` with these keys, `publish 1 at -1h`; `a/x` has a second key. */
  async #publish(words: Words): Promise<void> {
    const [number] = numbersIn(words);
    const keys = number === undefined ? words : Array<string>(number).fill("");
    const atMs = this.#nowMs + msOf(wordBehind(words, "at") ?? "0s");
    for (const key of keys) {
      const [k, l] = key.split("/");
      const payload = JSON.stringify({ ...(key === "" ? {} : { k, l }), n: this.#events.length + 1 });
      const [outcome] = await this.#on.record([eventOf(this.#action, payload)], atMs);
      this.#events.push({ rowid: recordedRowid(outcome), payload, attempts: 0 });
    }
  }

  #numberOf(event: number): number {
    return this.#events.findIndex(({ rowid }) => rowid === event) + 1;
  }

  /** Each claim has what was published, for the next attempt. */
  #take(claims: readonly Claim[]): readonly number[] {
    return claims.map((claim) => {
      const number = this.#numberOf(claim.event.eventId);
      const { payload, attempts } = this.#events[number - 1]!;
      expect(Buffer.from(claim.event.payload!).toString(), this.#step).toBe(payload);
      expect([claim.subscription.subscriptionId, claim.attempt], this.#step).toEqual([
        this.#id,
        attempts + 1,
      ]);
      this.#held.set(number, claim);
      return number;
    });
  }

  /**
   * `claim 1 3(2)` takes all there is, of which the last has failed twice; `claim only 1` takes one of more; `claim nothing until 1h`
   * says when the next one comes due.
   */
  async #claim(words: Words): Promise<void> {
    const wanted = words.filter((word) => /^\d+(\(\d+\))?$/.test(word));
    const limit = words[0] === "only" ? { limit: wanted.length } : {};
    const { claims, nextDueAtMs } = await this.#on.claim({ nowMs: this.#nowMs, leaseMs: LEASE_MS, ...limit });
    const byEvent = claims.toSorted((a, b) => a.event.eventId - b.event.eventId);
    const brought = this.#take(byEvent).map((number, at) =>
      wanted[at]?.includes("(") === true ? `${number}(${byEvent[at]!.failures})` : `${number}`,
    );
    expect(brought, this.#step).toEqual(wanted);
    const until = wordBehind(words, "until");
    if (until !== undefined) expect(nextDueAtMs, this.#step).toBe(this.#nowMs + msOf(until));
  }

  /** `drain 1 2` delivers these one by one, each as all there is, and then there is nothing. */
  async #drain(words: Words): Promise<void> {
    for (const word of words) {
      await this.#claim([word]);
      await this.#finish([word], "delivered");
    }
    await this.#claim([]);
  }

  /**
   * `fail 1 2 for 1h slow 2h`: the handler asks for an hour's wait, and for a pause of two. `deliver 1 and take 2`, or nothing: the
   * result wants the next one of its order. `deliver 1 (next is due)`, or `(none is due)`.
   */
  async #finish(words: Words, ending: AttemptEnding, facts: Partial<AttemptResult> = {}): Promise<void> {
    const [wait, slow, next] = ["for", "slow", "take"].map((word) => wordBehind(words, word));
    const given = {
      ...facts,
      startedAtMs: this.#nowMs,
      ...(wait === undefined ? {} : { retryAfterMs: msOf(wait) }),
      ...(slow === undefined ? {} : { slowUntilMs: this.#nowMs + msOf(slow) }),
      ...(next === undefined ? {} : { nextLeaseMs: LEASE_MS }),
    };
    for (const number of numbersIn(words)) {
      const result = resultOf(this.#held.get(number)!, ending, given);
      const options = { disableAfterMs: this.#disableAfterMs };
      const [outcome] = await this.#on.queue.finish([result], this.#nowMs, options);
      if (outcome?.kind !== "stored") throw new Error(`${this.#step}: it is ${outcome?.kind}`);
      this.#lose(number, ending !== "never started" && ending !== "filtered");
      const taken = this.#take(outcome.next === undefined ? [] : [outcome.next]);
      expect(taken, this.#step).toEqual(numbersIn(next === undefined ? [] : [next]));
      if (this.#said !== "")
        expect(outcome.isNextDue === true, this.#step).toBe(this.#said === "next is due");
    }
  }

  #lose(number: number, wasAttempt: boolean): void {
    this.#lost.push(this.#held.get(number)!);
    this.#held.delete(number);
    if (wasAttempt) this.#events[number - 1]!.attempts += 1;
  }

  /** `release 1 2`, or nothing: the leases that have ended. */
  async #release(words: Words): Promise<void> {
    const numbers = numbersIn(words);
    expect(await this.#on.queue.releaseExpired(this.#nowMs), this.#step).toBe(numbers.length);
    for (const number of numbers) this.#lose(number, true);
  }

  async #deliveryOf(number: number): Promise<number> {
    const event = this.#events[number - 1]!.rowid;
    return (await this.#on.deliveries({ subscription: this.#id, event }))[0]!.rowid;
  }

  async #request(verb: "retry" | "skip", number: number): Promise<void> {
    const id = await this.#deliveryOf(number);
    expect(await this.#on.queue[verb](id, this.#nowMs), this.#step).toMatchObject({ rowid: id });
  }

  /** `refuse skip 1 (why)` */
  async #refuse([verb, number]: Words): Promise<void> {
    const asking = this.#request(verb as "retry" | "skip", Number(number));
    const message = expect.stringContaining(this.#said) as string;
    await expect(asking, this.#step).rejects.toMatchObject({ code: "conflict", message });
  }

  #requestOf(selection: string): ReplayRequest {
    return { subscription: this.#id, selection: selection as ReplaySelection, fromMs: 0 };
  }

  async #startReplay(selection: string): Promise<void> {
    this.#replay = await this.#on.replays.start(this.#requestOf(selection), this.#nowMs);
  }

  /** `advance 2`: a step makes so many due, and may make no more; `advance end` has gone through all. */
  async #advance(wanted: string): Promise<void> {
    const [queued, state] = wanted === "end" ? [0, "ended"] : [Number(wanted), "running"];
    const limits = { maxQueued: queued || 1, maxDue: 1_000, maxUnfinished: 1_000 };
    for (;;) {
      const progress = await this.#on.replays.advance(this.#replay!.rowid, { nowMs: this.#nowMs, ...limits });
      // A step that comes to the end of what there is does not know it yet.
      if (wanted === "end" && progress.queued === 0 && progress.state === "running") continue;
      expect(progress, this.#step).toEqual({ queued, state });
      return;
    }
  }

  /** `replay missed 2`: so many are counted, and made due one by one. */
  async #replayAll(selection: string, wanted: number): Promise<void> {
    expect(await this.#on.replays.count(this.#requestOf(selection)), this.#step).toBe(wanted);
    await this.#startReplay(selection);
    for (let queued = 0; queued < wanted; queued += 1) await this.#advance("1");
    await this.#advance("end");
  }

  /** Consumers, whom no claim of the story is for, have subscribed to what evreg reports about itself. */
  async #watch(): Promise<void> {
    const watching = { application: "ops", handler: null, maxRetries: 0, active: true, secret: "s" };
    for (const action of SERVICE_EVENT_NAMES)
      await this.#on.catalog.createSubscription({ ...watching, subscription: action, action }, NOW);
  }

  /** What was reported, each as its schema has it. */
  async #reported(word: string): Promise<readonly unknown[]> {
    const [action, member] = REPORTS[word as keyof typeof REPORTS];
    const { events } = await this.#on.events.list({ action, order: "asc", limit: 50, page: 1 });
    const validator = compileSchema(SERVICE_EVENT_SCHEMAS[action]);
    return events.map(({ payload }) => {
      const value = JSON.parse(Buffer.from(payload!).toString()) as Record<string, unknown>;
      expect(validator.validate(value), this.#step).toBeUndefined();
      return member === "event_id" ? `${this.#numberOf(value[member] as number)}` : value[member];
    });
  }

  /** What the store says, and what it should. */
  async #look(verb: string, [word = "", ...rest]: Words): Promise<readonly [seen: unknown, wanted: unknown]> {
    const { queue } = this.#on;
    const of = { subscription: this.#id };
    const found = async () => (await this.#on.catalog.findSubscription(this.#id))!;
    const inTime = (span: string) => (span === "nothing" ? null : iso(this.#nowMs + msOf(span)));
    const listed = async (query: object): Promise<readonly number[]> =>
      (await this.#on.deliveries({ ...of, ...query })).map(({ event_id }) => this.#numberOf(event_id));
    switch (verb) {
      case "late": {
        const late = this.#lost.filter(({ event }) => this.#numberOf(event.eventId) === Number(word));
        const results = late.map((claim) => resultOf(claim, "delivered"));
        const outcomes = await queue.finish(results, this.#nowMs);
        return [outcomes, late.map(() => ({ kind: "fenced" }))];
      }
      case "list":
        return [await listed({ status: word as DeliveryStatus }), numbersIn(rest)];
      case "keyed":
        return [await listed({ key: word }), numbersIn(rest)];
      case "tried": {
        const delivery = await queue.find(await this.#deliveryOf(Number(word)));
        return [delivery?.attempts.map(({ outcome }) => outcome), rest.filter((one) => one !== "nothing")];
      }
      case "status": {
        const delivery = await queue.find(await this.#deliveryOf(Number(word)));
        const [status, ...more] = rest as [DeliveryStatus, ...string[]];
        const finished_at = ["failed", "filtered", "delivered"].includes(status) ? iso(this.#nowMs) : null;
        const due = wordBehind(more, "in");
        const next = due === undefined ? {} : { next_attempt_at: inTime(due) };
        return [delivery, expect.objectContaining({ status, finished_at, ...next })];
      }
      case "blocked": {
        const [number] = numbersIn(rest);
        return [(await found()).blocked_by, number === undefined ? null : await this.#deliveryOf(number)];
      }
      case "slowed":
        return [(await found()).slowed_until, inTime(word)];
      case "failing":
        return [(await found()).failing_since, inTime(word)];
      case "deactivated": {
        const disabled_reason = expect.stringContaining(this.#said) as string;
        return [await found(), expect.objectContaining({ active: false, disabled_reason })];
      }
      case "active":
        return [await found(), expect.objectContaining({ active: true, disabled_reason: null })];
      case "backlog": {
        const counted = await agreedBacklog(queue, this.#nowMs, of);
        const causes = BACKLOG_CAUSES.map((cause) => Object.assign({ cause }, counted[cause]));
        const wanted = [word, ...rest].join(" ").matchAll(/(\w+) (\d+)(?: since (\S+))?/g);
        return [
          causes.filter(({ deliveries }) => deliveries > 0),
          Array.from(wanted, ([, cause, count, since]) => {
            const from = since === undefined ? {} : { since: iso(this.#nowMs + msOf(since)) };
            return expect.objectContaining({ cause, deliveries: Number(count), ...from }) as unknown;
          }),
        ];
      }
      case "reported":
        return [await this.#reported(word), this.#said === "" ? rest : [this.#said]];
      case "replays": {
        const replays = await this.#on.replays.list({ limit: 9 });
        return [replays.map(({ status }) => status).toReversed(), [word, ...rest]];
      }
      case "pending":
        return [await queue.countPending(this.#id), Number(word)];
      case "ended":
        return [
          await this.#on.replays.find(this.#replay!.rowid),
          expect.objectContaining({ status: word, reason: this.#said }),
        ];
      case "remove":
        return [(await this.#on.events.removeExpired({ beforeMs: this.#nowMs + 1 })).events, Number(word)];
      case "events": {
        const left = await this.#on.rowids({ order: "asc" });
        return [left.map((event) => this.#numberOf(event)), numbersIn([word, ...rest])];
      }
      case "count":
        return [await this.#on.replays.count(this.#requestOf(word)), Number(rest[0])];
      default:
        throw new Error(`There is no step ${this.#step}.`);
    }
  }
}
