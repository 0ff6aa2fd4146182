import { describe, expect, test } from "vitest";
import { type Line, type PublishItems, withRetry } from "../../src/cli/publish/bulk-batch.ts";
import {
  type BulkOptions,
  type BulkState,
  NOTHING_SETTLED,
  publishLines,
} from "../../src/cli/publish/bulk-run.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { BatchResult, Event, NewEvent } from "../../src/domain/event.ts";
import type { BatchItem } from "../../src/domain/publish-body.ts";

/** What a target answers that takes all. */
function taken(items: readonly BatchItem[]): BatchResult {
  const data = items.map((item, at) => {
    const { action, payload } = item as NewEvent;
    return { rowid: at, action, payload, revision: 1, timestamped: "2026-01-01T00:00:00.000Z" };
  });
  return { data, errors: [], meta: { accepted: data.length, rejected: 0, replayed: 0 } };
}

function lineOf(number: number): Line {
  const bytes = Buffer.from(`{"action":"a","payload":{"n":${number}}}`);
  return { number, bytes, endsAt: number * 100 };
}

/** Groups of `size` lines, 1 to `count`. */
async function* groups(count: number, size: number): AsyncGenerator<Line[]> {
  for (let first = 1; first <= count; first += size) {
    yield Array.from({ length: Math.min(size, count + 1 - first) }, (_, at) => lineOf(first + at));
    await Promise.resolve();
  }
}

function numbersIn(events: readonly Event[]): number[] {
  return events.map(({ payload }) => (payload.value() as { n: number }).n);
}

function bulk(given: Partial<BulkOptions>): BulkOptions & { states: BulkState[]; published: number[] } {
  const states: BulkState[] = [];
  const published: number[] = [];
  return {
    lines: groups(0, 1),
    publish: (items) => Promise.resolve(taken(items)),
    onError: "continue",
    signal: new AbortController().signal,
    accepted: (events) => void published.push(...numbersIn(events)),
    refused: () => undefined,
    settled: (state) => void states.push(state),
    states,
    published,
    ...given,
  };
}

test("lines go in whole batches, and those of a producer that pauses at once", async () => {
  const sizes: number[] = [];
  const publish: PublishItems = (items) => {
    sizes.push(items.length);
    return Promise.resolve(taken(items));
  };
  const options = bulk({ lines: groups(1_240, 620), publish });
  expect(await publishLines(options)).toMatchObject({ end: "all", accepted: 1_240, settledLine: 1_240 });
  expect(sizes).toEqual([500, 120, 500, 120]);
  expect(options.published).toEqual(Array.from({ length: 1_240 }, (_, at) => at + 1));
  expect(options.states.map(({ settledLine }) => settledLine)).toEqual([500, 620, 1_120, 1_240]);
});

test.each([
  ["rate_limited", {}],
  ["unavailable", { lastUncertainLine: 1_000 }],
] as const)("after a batch that fails as %s it is known which lines were stored", async (code, uncertain) => {
  const failure = new EvregError(code, "Not now.");
  let batches = 0;
  const publish: PublishItems = (items) => {
    batches += 1;
    return batches === 1 ? Promise.resolve(taken(items)) : Promise.reject(failure);
  };
  expect(await publishLines(bulk({ lines: groups(1_500, 1_500), publish }))).toEqual({
    ...NOTHING_SETTLED,
    accepted: 500,
    settledLine: 500,
    settledBytes: 50_000,
    end: "failed",
    failure,
    ...uncertain,
  });
});

test("lines that were never sent are not in doubt after an interruption", async () => {
  const controller = new AbortController();
  async function* lines(): AsyncGenerator<Line[]> {
    yield [lineOf(1), lineOf(2)];
    await Promise.resolve();
    controller.abort();
    controller.signal.throwIfAborted();
  }
  const options = bulk({ lines: lines(), onError: "atomic", signal: controller.signal });
  const failure: unknown = expect.anything();
  expect(await publishLines(options)).toEqual({ ...NOTHING_SETTLED, end: "interrupted", failure });
});

/** A target that fails as told, then takes all; with the time that goes by only in waits. */
function unsteady(...failures: (Error | BatchResult)[]) {
  const controller = new AbortController();
  const waitsMs: number[] = [];
  const told: string[] = [];
  let tries = 0;
  let timeMs = 0;
  const publish = withRetry(
    (items) => {
      const failure = failures[tries];
      tries += 1;
      if (failure instanceof Error) return Promise.reject(failure);
      return Promise.resolve(failure ?? taken(items));
    },
    {
      signal: controller.signal,
      nowMs: () => timeMs,
      sleep: (delayMs) => {
        waitsMs.push(delayMs);
        timeMs += delayMs;
        return controller.signal.aborted ? Promise.reject(new Error("aborted")) : Promise.resolve();
      },
      log: (line) => void told.push(line),
    },
  );
  return { publish, waitsMs, told, tries: () => tries, controller };
}

const PAYLOAD = { action: "a", payload: undefined as unknown as NewEvent["payload"] };
const KEYED: NewEvent[] = [{ ...PAYLOAD, idempotency_key: "k" }];
const PLAIN: NewEvent[] = [PAYLOAD];
const busy = (retryAfterMs?: number) =>
  Object.assign(new EvregError("unavailable", "The store cannot commit."), { retryAfterMs });
const unreachable = (cause: string) => new EvregError("unreachable", "No.", { cause });
const noServer = new EvregError("unreachable", "No.", { status: 502 });
const fullDisk = new EvregError("unavailable", "The disk is full.", { stored: false });

describe("retries", () => {
  test("wait as long as the server asks, otherwise longer each time", async () => {
    const { publish, waitsMs, told } = unsteady(busy(2_000), busy(), busy(), busy(9_000));
    await publish(KEYED, {});
    expect(waitsMs).toEqual([2_000, 500, 1_000, 9_000]);
    expect(told).toEqual(["The store cannot commit. Trying again for 2 minutes."]);
  });

  test("end after two minutes, and at once where the server asks for more", async () => {
    const long = unsteady(...Array.from({ length: 100 }, () => busy()));
    await expect(long.publish(KEYED, {})).rejects.toMatchObject({ code: "unavailable" });
    const waitedMs = long.waitsMs.reduce((sum, waitMs) => sum + waitMs, 0);
    expect(waitedMs).toBeGreaterThan(115_000);
    expect(waitedMs).toBeLessThanOrEqual(120_000);
    const asked = unsteady(busy(121_000));
    await expect(asked.publish(KEYED, {})).rejects.toMatchObject({ code: "unavailable" });
    expect(asked.tries()).toBe(1);
  });

  test.each([
    ["a lost connection, with keys", unreachable("ECONNRESET"), KEYED, true],
    ["a lost connection, without", unreachable("ECONNRESET"), PLAIN, false],
    ["a server that is away, without keys", unreachable("ECONNREFUSED"), PLAIN, true],
    ["a proxy without its server, with keys", noServer, KEYED, true],
    ["a store that cannot commit, without keys", busy(), PLAIN, false],
    ["a store that stored nothing of it, without keys", fullDisk, PLAIN, true],
    ["a rate that is limited, without keys", new EvregError("rate_limited", "Later."), PLAIN, true],
    ["an internal error, with keys", new EvregError("internal", "No."), KEYED, true],
    ["an internal error, without", new EvregError("internal", "No."), PLAIN, false],
    ["a token that was revoked, with keys", new EvregError("unauthorized", "No."), KEYED, false],
    ["a fault of its own", new TypeError("oops"), KEYED, false],
  ])("%s", async (_, failure, items, isTriedAgain) => {
    const { publish, tries } = unsteady(taken(items), failure);
    await publish(items, {});
    const again = publish(items, {});
    if (isTriedAgain) expect(await again).toEqual(taken(items));
    else await expect(again).rejects.toBe(failure);
    expect(tries()).toBe(isTriedAgain ? 3 : 2);
  });

  test("start only after the server was reached once", async () => {
    const { publish, tries } = unsteady(unreachable("ECONNREFUSED"));
    await expect(publish(KEYED, {})).rejects.toMatchObject({ code: "unreachable" });
    expect(tries()).toBe(1);
    const restarted = unsteady(busy(), unreachable("ECONNREFUSED"));
    expect(await restarted.publish(KEYED, {})).toEqual(taken(KEYED));
  });

  test("send failed items again with the rest where all have keys", async () => {
    const errors = [{ index: 0, ...busy().body() }];
    const partly: BatchResult = { data: [null], errors, meta: { accepted: 0, rejected: 1, replayed: 0 } };
    expect(await unsteady(partly).publish(KEYED, {})).toEqual(taken(KEYED));
    expect(await unsteady(partly).publish(PLAIN, {})).toBe(partly);
  });

  test("end at an interruption with the last error", async () => {
    const { publish, controller, tries } = unsteady(busy(2_000));
    const publishing = publish(KEYED, {});
    controller.abort();
    await expect(publishing).rejects.toMatchObject({ code: "unavailable" });
    expect(tries()).toBe(1);
  });
});
