import { describe, expect, test } from "vitest";
import { lengthOf, someOf } from "../../faults/length.ts";
import { checkSchema } from "../../../src/schema/check.ts";
import { Sampler } from "../../../src/schema/generate/generator.ts";
import { compileSchema } from "../../../src/schema/validate/compile.ts";
import { githubTypes } from "../../support/github.ts";
import { holding, SCHEMAS, text, tree, whole } from "./schemas.ts";

describe("every sample conforms", () => {
  test.each(SCHEMAS)("%s", (_, schemata) => {
    checkSchema(schemata);
    const sampler = new Sampler(schemata);
    const validator = compileSchema(schemata);
    for (let stream = 0; stream < 20; stream++) {
      const { payload } = sampler.sample(7, stream);
      expect(payload, `stream ${stream}`).toBeTypeOf("object");
      expect(validator.validate(JSON.parse(JSON.stringify(payload)))).toBeUndefined();
    }
  });
});

test("event types of GitHub have samples, which conform", { timeout: 120_000 }, () => {
  const types = githubTypes();
  expect(types).toHaveLength(58);
  for (const { name, schemata } of someOf(types, lengthOf("schema/sample/sampler")["event types"])) {
    const sampler = new Sampler(schemata);
    const { payload } = sampler.sample(1, 0);
    expect(payload, name).toBeTypeOf("object");
    expect(compileSchema(schemata).validate(payload), name).toBeUndefined();
    // Not the least that conforms: what is optional is there as well.
    expect(JSON.stringify(payload).length, name).toBeGreaterThan(500);
  }
});

test("the same seed gives the same payloads; another seed or stream gives others", () => {
  const schemata = {
    type: "object",
    required: ["a"],
    properties: { a: text, b: whole, c: tree },
    definitions: { tree },
  };
  const texts = (seed: number): string[] =>
    Array.from({ length: 8 }, (_, stream) => JSON.stringify(new Sampler(schemata).sample(seed, stream)));
  expect(texts(42)).toEqual(texts(42));
  expect(texts(42)).not.toEqual(texts(43));
  expect(new Set(texts(42)).size).toBeGreaterThan(4);
  // A seed's upper half counts as well.
  expect(texts(42 + 2 ** 40)).not.toEqual(texts(42));
  // One sampler for all of them makes no difference.
  const sampler = new Sampler(schemata);
  expect(texts(42).map((_, stream) => JSON.stringify(sampler.sample(42, stream)))).toEqual(texts(42));
});

test("examples in the schema are used if they conform", () => {
  const sampler = new Sampler(holding({ type: "string", pattern: "^\\d+$", examples: ["12", "no"] }));
  const found = new Set(Array.from({ length: 30 }, (_, stream) => sampler.sample(3, stream).payload?.["a"]));
  expect(found).toContain("12");
  expect(found).not.toContain("no");
});

describe("where no payload is found", () => {
  test("a contradiction ends without a payload", () => {
    const sampler = new Sampler(holding({ allOf: [{ type: "string" }, { type: "integer" }] }));
    expect(sampler.sample(1, 0)).toEqual({ payload: undefined, failure: undefined });
  });

  test("the error says why the last attempt failed", () => {
    const { payload, failure } = new Sampler({
      required: ["a"],
      properties: { a: { enum: [1, 2] } },
      not: { properties: { a: { maximum: 2 } } },
    }).sample(1, 0) as { payload: undefined; failure: unknown };
    expect(payload).toBeUndefined();
    expect(failure).toMatchObject({ field: "", message: expect.stringContaining("not") as unknown });
  });
});
