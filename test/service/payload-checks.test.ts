import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Schemata } from "../../src/domain/action.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { budget, MAX_FAILURES, SHORT_CHECK_BYTES, SHORT_CHECK_STEPS } from "../../src/schema/limits.ts";
import { compileSchema, type Validator } from "../../src/schema/validate/compile.ts";
import { type CompiledSchema, PayloadValidator } from "../../src/service/payload-checks.ts";
import { ValidationThread } from "../../src/service/validation-thread.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { ManualClock } from "../support/manual-clock.ts";

/** Its steps double with each level of a payload. */
const DOUBLING = { properties: { a: { allOf: [{ $ref: "#" }, { $ref: "#" }] }, b: { type: "string" } } };

const nested = (levels: number): string => `${'{"a":'.repeat(levels)}0${"}".repeat(levels)}`;
/** More steps than the thread that answers requests takes, and fewer than the limit. */
const LONG = nested(15);
const LONG_AND_WRONG = `{"a":${nested(14)},"b":1}`;
/** Some 120,000 steps: not enough for another thread. */
const LONGISH = nested(11);
/** Would take 2^40 of them. */
const ENDLESS = nested(40);

let local: LocalService;
beforeAll(async () => {
  local = await openLocalService();
  const { actions } = local.evreg;
  await actions.create({ action: "long", application: "shop", schemata: DOUBLING });
  await actions.create({ action: "short", application: "shop", schemata: { required: ["id"] } });
  for (const action of ["long", "short"]) await outcomeOf(action, `{"id":0}`);
});
afterAll(() => local.close());

const item = (action: string, payload: string, key?: string): NewEvent => ({
  action,
  payload: RawJson.fromText(payload),
  ...(key === undefined ? {} : { idempotency_key: key }),
});

function outcomeOf(action: string, payload: string): Promise<unknown> {
  return local.evreg.events.publish(item(action, payload)).then(
    ({ data }) => data.revision,
    (error: unknown) => error,
  );
}

function checksOn(clock: ManualClock): PayloadValidator {
  return new PayloadValidator(new ValidationThread(clock));
}

/** @param schemata what the other thread checks by; the same unless given */
function compiled(schemata: Schemata, others: Schemata = schemata): CompiledSchema {
  return { schemata: others, validator: compileSchema(schemata) };
}

describe("payloads that take long to check", () => {
  test("are accepted when they conform, and refused with the place when they do not", async () => {
    expect(await outcomeOf("long", LONG)).toBe(1);
    expect(await outcomeOf("long", LONG_AND_WRONG)).toMatchObject({
      code: "invalid",
      details: { field: "b", message: "must be a string" },
    });
  });

  test("are refused beyond the step limit, with that reason", async () => {
    const most = (2_000_000 + 5 * ENDLESS.length).toLocaleString("en");
    expect(await outcomeOf("long", ENDLESS)).toMatchObject({
      code: "invalid",
      message: `The payload does not conform to the schema of long: it takes more than ${most} steps to check against its schema`,
    });
  });

  test("use this thread for no longer than a short check", async () => {
    const publishing = outcomeOf("long", LONG);
    await new Promise(setImmediate);
    expect(budget.left).toBeLessThan(0);
    expect(budget.left).toBeGreaterThan(-SHORT_CHECK_STEPS / 100);
    expect(await publishing).toBe(1);
    expect(budget.left).toBeLessThan(0);
  });

  test("end when the caller of their batch leaves; what was stored by then stays", async () => {
    const gone = new AbortController();
    const items = [item("short", `{"id":1}`), ...Array.from({ length: 200 }, () => item("long", ENDLESS))];
    const publishing = local.evreg.events.publishBatch(items, {}, gone.signal);
    await outcomeOf("short", `{"id":2}`);
    gone.abort();
    await expect(publishing).rejects.toBe(gone.signal.reason);
  });

  test("mix with short ones in a batch, with results in order", async () => {
    const batch = [item("short", `{"id":1}`), item("long", LONG), item("long", ENDLESS), item("short", "{}")];
    const { data, errors } = await local.evreg.events.publishBatch(batch);
    expect(data.map((event) => event?.action)).toEqual(["short", "long", undefined, undefined]);
    expect(errors.map(({ index, code }) => [index, code])).toEqual([
      [2, 422],
      [3, 422],
    ]);
  });
});

test.for([
  { checkMs: 3, mostPerTurn: 2 },
  { checkMs: 10, mostPerTurn: 1 },
])(
  "checks of $checkMs ms hold a turn for no longer than its slice and one check",
  async ({ checkMs, mostPerTurn }) => {
    let nowMs = performance.now();
    const time = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    onTestFinished(() => time.mockRestore());
    // A slice that began before is over then, so that the counter comes first in each turn.
    await new Promise(setImmediate);
    let turn = 0;
    let counter = setImmediate(function count() {
      turn += 1;
      counter = setImmediate(count);
    });
    onTestFinished(() => clearImmediate(counter));
    const checks = checksOn(new ManualClock());
    const validator = compileSchema(DOUBLING);
    const timed: Validator = {
      ...validator,
      validate(payload, maxSteps, maxFailures) {
        nowMs += checkMs;
        return validator.validate(payload, maxSteps, maxFailures);
      },
    };
    const action = { validator: timed, schemata: DOUBLING };
    const payload = RawJson.fromText(`{"a":${LONGISH},"b":1}`);
    /** How many checks each turn made. */
    const made = new Map<number, number>();
    const check = async (): Promise<void> => {
      const pause = checks.pause();
      if (pause !== undefined) await pause;
      made.set(turn, (made.get(turn) ?? 0) + 1);
      expect(await checks.failureOf(action, payload, { caller: checks })).toBeDefined();
    };
    await Promise.all(Array.from({ length: 9 }, check));
    expect([...made.values()].reduce((sum, count) => sum + count)).toBe(9);
    expect(Math.max(...made.values())).toBe(mostPerTurn);
  },
);

test("short checks that come together run in one turn of the event loop", async () => {
  let isOver = false;
  setImmediate(() => (isOver = true));
  const checks = checksOn(new ManualClock());
  const action = compiled({ required: ["id"] });
  for (let check = 0; check < 3; check++) {
    expect(checks.pause()).toBeUndefined();
    const failure = await checks.failureOf(action, RawJson.fromText("{}"), { caller: checks });
    expect(failure).toBeDefined();
  }
  expect(isOver).toBe(false);
});

test("all rules that a payload breaks are found on another thread where to find them takes long", async () => {
  const checks = checksOn(new ManualClock());
  // To find the likeliest of the branches takes far more steps than to find that none allows it.
  const inside = { anyOf: [{ $ref: "#" }, { $ref: "#" }] };
  const action = compiled({ type: "object", properties: { a: inside } });
  const payload = RawJson.fromText(nested(10));
  expect(action.validator.conforms(payload.value(), SHORT_CHECK_STEPS / 4)).toBe(false);
  const verdict = checks.failureOf(action, payload, { caller: checks }, MAX_FAILURES);
  expect(verdict).toBeInstanceOf(Promise);
  expect(await verdict).toEqual(action.validator.validate(payload.value(), 2_000_000, MAX_FAILURES));
});

test("a large payload is not parsed on this thread", async () => {
  const clock = new ManualClock();
  const schemata = { required: ["id"] };
  const checks = checksOn(clock);
  const action = compiled(schemata);
  const read = vi.spyOn(RawJson.prototype, "value");
  const failureOf = (name: string): unknown => {
    const bytes = Buffer.from(`{"${name}":"${"x".repeat(SHORT_CHECK_BYTES)}"}`);
    return checks.failureOf(action, new RawJson(bytes), { caller: checks });
  };
  expect(await failureOf("id")).toBeUndefined();
  expect(await failureOf("no")).toMatchObject({ field: "id", message: "is required" });
  expect(read).not.toHaveBeenCalled();
  read.mockRestore();
  await clock.advance(10_000);
});

const check = (schemata: object, payload: string) => ({
  schemata,
  payload: Buffer.from(payload),
  maxSteps: 1_000,
});

describe("the thread", () => {
  const one = {};

  test("ends when it was idle for a while, and is there again when it is needed", async () => {
    const clock = new ManualClock();
    const thread = new ValidationThread(clock);
    const needing = { required: ["a"] };
    expect(await thread.check(check(needing, "{}"), { caller: one })).toMatchObject({
      failure: { field: "a" },
    });
    expect(clock.pending).toBe(1);
    expect(await thread.check(check(needing, `{"a":1}`), { caller: one })).toEqual({
      failure: undefined,
      isDecided: true,
    });
    await clock.advance(9_999);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect(clock.pending).toBe(0);
    expect(await thread.check(check(needing, "{}"), { caller: one })).toMatchObject({
      failure: { field: "a" },
    });
    await clock.advance(10_000);
  });

  test("that dies fails the check in progress, and no other", async () => {
    const clock = new ManualClock();
    const thread = new ValidationThread(clock);
    // Not JSON, which never comes from a request: it throws outside of what a check foresees.
    const [broken, next] = await Promise.allSettled([
      thread.check(check({}, "{"), { caller: one }),
      thread.check(check({ required: ["a"] }, "{}"), { caller: one }),
    ]);
    expect(broken).toMatchObject({
      reason: { code: "unavailable", message: expect.stringContaining("try again") },
    });
    expect(next).toMatchObject({ value: { failure: { field: "a" } } });
    await clock.advance(10_000);
  });
});
