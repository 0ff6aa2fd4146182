import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Schemata } from "../../src/domain/action.ts";
import { SCHEMA_LIMITS } from "../../src/schema/limits.ts";
import { compileSchema } from "../../src/schema/validate/compile.ts";
import { FORMATS, isCheckedFormat } from "../../src/schema/validate/formats.ts";
import { SchemaChecks } from "../../src/service/schema-checks.ts";
import { refused } from "./refused.ts";

// docs/schemas.md says how evreg differs from draft-07; these hold it to that.

const page = readFileSync(new URL("../../docs/schemas.md", import.meta.url), "utf8");

/** The text under a heading. */
function section(heading: string): string {
  const text = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  if (text === undefined) throw new Error(`docs/schemas.md has no section ${heading}`);
  return text;
}

/** What the rows under a heading say, with the schema each gives. */
function examples(heading: string): [string, unknown][] {
  const rows = [...section(heading).matchAll(/^\| (.+?) \| `(.+)` \|$/gm)];
  return rows.map(([, what = "", schema = ""]) => [what, JSON.parse(schema)]);
}

describe("refused", () => {
  const rows = examples("Refused");

  test.each(rows)("%s", (_, schemata) => {
    expect(refused(schemata).message).not.toBe("");
  });

  test("are each refused for their own reason", () => {
    const reasons = rows.map(([, schemata]) => refused(schemata).message);
    expect(new Set(reasons).size).toBe(rows.length);
    expect(rows.length).toBeGreaterThan(12);
  });
});

test("the documented limits are those that are enforced", () => {
  const documented = [...section("Limits").matchAll(/^\| ([\d,]+) \|/gm)].map(([, most = ""]) =>
    Number(most.replaceAll(",", "")),
  );
  const { bytes, filterBytes, depth, subschemas, chained } = SCHEMA_LIMITS;
  const { enumValues, patternLength } = SCHEMA_LIMITS;
  const inOrder = [bytes, filterBytes, depth, subschemas, chained];
  expect(documented).toEqual([...inOrder, enumValues, patternLength]);
});

test.each(examples("Accepted with a warning"))("warned of: %s", async (_, schemata) => {
  const checks = new SchemaChecks();
  expect(await checks.warnings("schemata", schemata as Schemata, checks, undefined)).toHaveLength(1);
});

test("the documented formats are those that are checked", () => {
  const [list = ""] = section("Formats").split("\n| ");
  const named = [...list.matchAll(/`([a-z0-9-]+)`/g)].map(([, name = ""]) => name);
  expect([...new Set(named)].toSorted()).toEqual(Object.keys(FORMATS).toSorted());
});

const FORMAT_ROWS = [...section("Formats").matchAll(/^\| `(.+?)` \| `(.+)` \| `(.+)` \|$/gm)];

test.each(FORMAT_ROWS.map(([, ...cells]) => cells))("the format %s accepts %s and refuses %s", (...cells) => {
  const [format, takes = "", refuses = ""] = cells;
  expect(isCheckedFormat(format!)).toBe(true);
  const schema = compileSchema({ properties: { a: { format } } });
  expect(schema.validate({ a: JSON.parse(takes) as unknown })).toBeUndefined();
  expect(schema.validate({ a: JSON.parse(refuses) as unknown })).toBeDefined();
});

const NUMBER_ROWS = [
  ...section("Numbers").matchAll(/^\| `(.+?)` \| `(.+?)` \| (conforms|does not) \| .+ \|$/gm),
];

test.each(NUMBER_ROWS.map(([, ...cells]) => cells))("as to %s, %s %s", (...cells) => {
  const [schemata = "", payload = "", verdict] = cells;
  const schema = compileSchema({ properties: { a: JSON.parse(schemata) as unknown } });
  const fault = schema.validate({ a: JSON.parse(payload) as unknown });
  expect(fault === undefined ? "conforms" : "does not").toBe(verdict);
});

test("each kind of documented row was found", () => {
  expect([FORMAT_ROWS.length, NUMBER_ROWS.length]).toEqual([21, 5]);
});
