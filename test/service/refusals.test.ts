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

test("the refusals of a batch are complete up to 1 MiB, and short after that", async () => {
  const broken = event({ a: "x".repeat(600) }, "told");
  const valid = event({ ok: { a: "b" } });
  const { data, errors } = await local.evreg.events.publishBatch([
    valid,
    ...Array.from({ length: 999 }, () => broken),
  ]);
  expect(data.filter((one) => one !== null)).toHaveLength(1);
  expect(errors).toHaveLength(999);
  const full = errors.filter(({ details }) => "errors" in details);
  // The first ones, as many as fit.
  expect(errors.slice(0, full.length)).toEqual(full);
  expect(jsonBytes(full)).toBeLessThanOrEqual(1024 * 1024);
  expect(jsonBytes(errors.slice(0, full.length)) + jsonBytes(full.at(-1)) + 2).toBeGreaterThan(1024 * 1024);
  for (const { error, details, code } of errors.slice(full.length)) {
    expect(code).toBe(422);
    expect(Buffer.byteLength(error)).toBeLessThanOrEqual(256);
    expect(details).toEqual({
      field: "a",
      message: expect.stringMatching(/^must be one of .*…$/),
      value: `${"x".repeat(253)}…`,
    });
    expect(jsonBytes(details["message"])).toBeLessThan(300);
  }
});
