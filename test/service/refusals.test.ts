import { afterAll, beforeAll, expect, test } from "vitest";
import type { EvregError } from "../../src/domain/error.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { openLocalService } from "../support/local-service.ts";
import type { LocalService } from "../support/local-service.ts";

let local: LocalService;

beforeAll(async () => {
  local = await openLocalService();
  const strings = { type: "object", additionalProperties: { type: "string" } };
  const schemata = { type: "object", additionalProperties: strings };
  await local.evreg.actions.create({ action: "a.b", application: "app", schemata });
  // Each of its refusals is a few kilobytes of a few bytes.
  const told = {
    additionalProperties: { enum: Array.from({ length: 10 }, (_, at) => `${at}${"é".repeat(99)}`) },
  };
  await local.evreg.actions.create({ action: "told", application: "app", schemata: told });
});
afterAll(() => local.close());

function event(payload: unknown, action = "a.b"): NewEvent {
  return { action, payload: RawJson.fromText(JSON.stringify(payload)) };
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

const NUMBERS = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`c${at}`, 1]));

async function detailsOf(item: NewEvent): Promise<Record<string, any>> {
  const refusal = await local.evreg.events.publish(item).catch((error: unknown) => error as EvregError);
  return (refusal as EvregError).details;
}

test("a long name is not repeated for each rule that is broken below it", async () => {
  const details = await detailsOf(event({ ['"'.repeat(7_000)]: NUMBERS }));
  const field = `[${JSON.stringify(`${'"'.repeat(64)}…${'"'.repeat(63)}`)}].c0`;
  expect(details).toMatchObject({ field, message: "must be a string", value: 1 });
  expect(details["errors"]).toHaveLength(20);
  expect(details["errors"][0]).toEqual({ field, message: "must be a string", value: 1 });
});

test("the broken rules reported for one event have at most 16 KiB, and are complete up to that", async () => {
  const broken = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, "x".repeat(600)]));
  const { errors } = await detailsOf(event(broken, "told"));
  expect(errors.length).toBeLessThan(20);
  expect(jsonBytes(errors)).toBeLessThanOrEqual(16 * 1024);
  expect(jsonBytes(errors) + 1 + jsonBytes(errors[0]) + 1).toBeGreaterThan(16 * 1024);
});

test("each refusal of a batch is short, and has the first rule that is broken", async () => {
  const broken = event({ a: "x".repeat(600), b: 1 }, "told");
  const { data, errors } = await local.evreg.events.publishBatch([event({ ok: { a: "b" } }), broken]);
  expect(data.map((one) => one !== null)).toEqual([true, false]);
  const [refusal] = errors;
  expect(refusal).toEqual({
    index: 1,
    code: 422,
    error: expect.stringMatching(/^The payload does not conform to the schema of told: a must .*…$/),
    details: {
      field: "a",
      message: expect.stringMatching(/^must be one of .*…$/),
      value: `${"x".repeat(253)}…`,
    },
  });
  expect(jsonBytes(refusal)).toBeLessThan(1_000);
});
