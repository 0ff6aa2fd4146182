import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import type { Validator } from "../../src/schema/validate/compile.ts";
import { accepted } from "./refused.ts";

/** Where Debian's package of that name puts the official tests of JSON Schema. */
const FOLDER = "/usr/share/json-schema-test-suite/tests/draft7";

/** Of the optional tests: what docs/schemas.md calls unchecked. */
const UNCHECKED = new Set([
  "optional/content.json",
  ...["idn-email", "idn-hostname", "iri", "iri-reference"].map((name) => `optional/format/${name}.json`),
  // It also asks what a label that begins with xn-- stands for.
  "optional/format/hostname.json",
]);
const ELSEWHERE = "refers to something outside this schema";

interface Group {
  readonly description: string;
  readonly schema: unknown;
  readonly tests: readonly {
    readonly description: string;
    readonly data: unknown;
    readonly valid: boolean;
  }[];
}

const files = existsSync(FOLDER)
  ? readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".json") && !UNCHECKED.has(file),
    )
  : [];

/** The root of an action's schema is an object; a schema that is not one stands in a property. */
function held({ schema }: Group): Validator | undefined {
  try {
    return accepted(typeof schema === "boolean" ? { properties: { value: schema } } : schema);
  } catch (error) {
    if (!(error instanceof EvregError) || !error.message.includes(ELSEWHERE)) throw error;
    return undefined;
  }
}

describe.skipIf(files.length === 0)("the official tests of draft-07", () => {
  let refused = 0;

  test.each(files)("%s", (file) => {
    for (const group of JSON.parse(readFileSync(join(FOLDER, file), "utf8")) as Group[]) {
      const validator = held(group);
      if (validator === undefined) {
        refused += 1;
        continue;
      }
      for (const { description, data, valid } of group.tests) {
        const payload = typeof group.schema === "boolean" ? { value: data } : data;
        const about = `${group.description}: ${description}`;
        expect(validator.validate(payload) === undefined, about).toBe(valid);
      }
    }
  });

  test("only schemas that refer to other documents are refused", () => {
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThan(12);
  });
});
