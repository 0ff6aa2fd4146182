import { describe, expect, it } from "vitest";
import { inputSchema, NO_NUL } from "../../src/domain/request.ts";
import { typedQuery } from "../../src/http/request.ts";
import { checkQuery } from "../../src/service/requests.ts";
import { refusal } from "../domain/refusal.ts";

const SCHEMA = inputSchema("Query", {
  name: { type: "string", minLength: 1, maxLength: 5, pattern: NO_NUL },
  limit: { type: "integer", minimum: 1, maximum: 500 },
  after: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  active: { type: "boolean" },
  order: { type: "string", enum: ["asc", "desc"] },
  from: { type: "string", format: "date-time" },
});

const read = (text: string): object => checkQuery(SCHEMA, typedQuery(SCHEMA, new URLSearchParams(text)));

describe("a query", () => {
  it("converts values to their types", () => {
    const text = "name=a%20b&limit=500&after=0&active=false&order=asc&from=2026-01-01T01:00:00%2B01:00";
    expect(read(text)).toEqual({
      name: "a b",
      limit: 500,
      after: 0,
      active: false,
      order: "asc",
      from: "2026-01-01T01:00:00+01:00",
    });
    expect(read("")).toEqual({});
    expect(read("active=true")).toEqual({ active: true });
  });

  it.each([
    ["limit", ["0", "501", "-1", "", "1.0", "1e2", "0x10", "%2B5", "05", " 5", "５", "Infinity"]],
    ["after", ["9007199254740993", "99999999999999999999"]],
    ["active", ["True", "1", ""]],
    ["order", ["up", ""]],
    ["name", ["", "abcdef"]],
    ["from", ["2026-01-01", "2026-02-30T00:00:00Z"]],
    ["nmae", ["a"]],
    ["Name", ["a"]],
    ["__proto__", ["a"]],
    ["constructor", ["a"]],
    ["", ["a"]],
  ])("refuses %s=%j", (field, values) => {
    for (const text of values.map((value) => `${field}=${value}`)) {
      const { code, details, message } = refusal(() => read(text));
      const named = { field, value: String(details["value"]) };
      expect({ code, ...named }, text).toEqual({
        code: "malformed",
        field,
        value: new URLSearchParams(text).get(field),
      });
      expect(message).toBe(`${field}: ${String(details["message"])}`);
    }
  });

  it.each([
    ["limit=0", "must be at least 1"],
    ["limit=1.5", "must be an integer"],
    ["active=1", "must be true or false"],
    ["order=up", 'must be one of "asc", "desc"'],
  ])("says of %s that it %s", (text, message) => {
    expect(refusal(() => read(text)).details["message"]).toBe(message);
  });

  it("names the known parameters next to an unknown one", () => {
    expect(refusal(() => read("nmae=a")).message).toContain("name, limit, after, active, order, from");
    const none = inputSchema("Query", {});
    expect(refusal(() => typedQuery(none, new URLSearchParams("a=1"))).message).toContain("takes none");
  });

  it("explains an unescaped +", () => {
    expect(refusal(() => read("from=2026-01-01T00:00:00+01:00")).message).toContain("%2B");
    expect(refusal(() => read("from=yesterday")).message).not.toContain("%2B");
  });

  it("repeats only the beginning of a long value", () => {
    const { details, message } = refusal(() => read(`${"n".repeat(5_000)}=${"v".repeat(5_000)}`));
    expect(String(details["field"]).length).toBeLessThan(200);
    expect(String(details["value"]).length).toBeLessThan(200);
    expect(message.length).toBeLessThan(400);
  });
});
