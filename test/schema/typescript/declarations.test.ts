/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { describe, expect, test } from "vitest";
import { SCHEMAS } from "../sample/schemas.ts";
import { checkSchema } from "../../../src/schema/check.ts";
import { Sampler } from "../../../src/schema/generate/generator.ts";
import { declarationsFor } from "../../../src/schema/typescript/declarations.ts";
import { lengthOf, someOf } from "../../faults/length.ts";
import { githubTypes } from "../../support/github.ts";
import { compilerComplaints } from "../../support/typescript.ts";

const text = { type: "string" };
const whole = { type: "integer" };

/** The type of the member `a` under a schema, on one line. */
function typeOf(schema: unknown, definitions = {}): string {
  return declared({ type: "object", required: ["a"], properties: { a: schema }, definitions })
    .replace(/^export type X = \{ a: /, "")
    .replace(/; \};$/, "");
}

/** The declarations for one schema. */
const sourceOf = (schemata: object): string =>
  declarationsFor([{ name: "x", schemata, about: [] }], []).source;

/** The declarations for one schema, on one line. */
function declared(schemata: Record<string, unknown>): string {
  checkSchema(schemata);
  return sourceOf(schemata).replaceAll(/\s+/g, " ").trim();
}

const MEMBERS: readonly (readonly [schema: unknown, type: string])[] = [
  [true, "unknown"],
  [false, "never"],
  [{}, "unknown"],
  [text, "string"],
  [whole, "number"],
  [{ type: ["integer", "number", "null"] }, "number | null"],
  [{ type: "boolean" }, "boolean"],
  [{ type: "object" }, "{ [key: string]: unknown }"],
  [{ type: "array" }, "unknown[]"],
  [{ enum: ["a", 'b"\\', 1, -2.5, true, null] }, String.raw`| "a" | "b\"\\" | 1 | -2.5 | true | null`],
  [{ enum: ["a", 1, null], type: ["string", "null"] }, '"a" | null'],
  [{ enum: [1, 2], type: "string" }, "never"],
  [{ const: { a: [1, "x"], b: {} } }, '{ a: [1, "x"]; b: { [key: string]: never }; }'],
  [{ const: -0 }, "0"],
  [{ type: "array", items: { type: ["string", "null"] } }, "(string | null)[]"],
  [{ items: text }, "string[]"],
  [{ type: "array", items: [text, whole] }, "[string?, number?, ...unknown[]]"],
  [{ type: "array", items: [text, whole], minItems: 1, additionalItems: false }, "[string, number?]"],
  [
    { type: "array", items: [text], additionalItems: { type: ["null", "string"] } },
    "[string?, ...(null | string)[]]",
  ],
  [{ type: "array", items: [text, whole, true], maxItems: 2 }, "[string?, number?]"],
  [{ type: "array", items: [text, false, text] }, "[string?]"],
  [{ type: "array", items: [{ enum: [1, 2] }] }, "[(1 | 2)?, ...unknown[]]"],
  [{ properties: { b: text } }, "{ b?: string; }"],
  [{ type: "object", properties: { b: text }, additionalProperties: false }, "{ b?: string; }"],
  [{ type: "object", additionalProperties: false }, "{ [key: string]: never }"],
  [{ type: "object", additionalProperties: whole }, "{ [key: string]: number }"],
  [
    {
      type: "object",
      properties: { b: text, c: whole },
      required: ["c"],
      additionalProperties: { type: "null" },
    },
    "{ b?: string; c: number; [key: string]: unknown; }",
  ],
  [
    { type: "object", properties: { b: text }, additionalProperties: true },
    "{ b?: string; [key: string]: unknown; }",
  ],
  [
    { type: "object", patternProperties: { "^x-": whole }, additionalProperties: false },
    "{ [key: string]: number }",
  ],
  [{ type: "object", patternProperties: { "^x-": whole } }, "{ [key: string]: unknown }"],
  [{ type: "object", required: ["b"] }, "{ b: unknown; }"],
  [{ type: "object", required: ["b"], additionalProperties: false }, "{ b: never; }"],
  [{ type: "object", required: ["b"], additionalProperties: text }, "{ b: string; [key: string]: unknown; }"],
  [
    { type: "object", properties: { "a-b": text, "": text, "1": text, class: text } },
    '{ "1"?: string; "a-b"?: string; ""?: string; class?: string; }',
  ],
  [
    { allOf: [{ properties: { b: text } }, { properties: { c: whole } }] },
    "{ b?: string; } & { c?: number; }",
  ],
  [{ type: "object", allOf: [{ properties: { b: text } }] }, "{ b?: string; }"],
  [{ anyOf: [text, whole] }, "string | number"],
  [{ anyOf: [text, {}] }, "unknown"],
  [{ oneOf: [text, { type: "null" }, text] }, "string | null"],
  [{ type: "string", anyOf: [{ minLength: 1 }, { maxLength: 0 }] }, "string"],
  [
    { type: "object", properties: { b: text, c: text }, anyOf: [{ required: ["b"] }, { required: ["c"] }] },
    "{ b?: string; c?: string; } & ({ b: unknown; } | { c: unknown; })",
  ],
  // What has no type is of the types that stand around it.
  [
    { type: ["string", "object"], allOf: [{ properties: { b: text } }] },
    "(string | { [key: string]: unknown }) & (string | { b?: string; })",
  ],
  [
    {
      type: "object",
      if: { properties: { k: { const: 1 } } },
      then: { required: ["x"] },
      else: { required: ["y"] },
    },
    "{ k?: 1; } & { x: unknown; } | { y: unknown; }",
  ],
  [{ type: "object", if: { required: ["k"] }, then: { required: ["x"] } }, "{ [key: string]: unknown }"],
  [{ type: "string", not: { const: "x" } }, "string"],
];

test.each(MEMBERS)("%j is %s", (schema, type) => {
  expect(typeOf(schema)).toBe(type);
});

const listOf = (item: unknown) => ({ money: { items: { $ref: "#/definitions/item" } }, item });

const namesOf = (...names: string[]): readonly string[] =>
  declarationsFor(
    names.map((name) => ({ name, schemata: {}, about: [] })),
    ["Delivery"],
  ).names;

const uses = (name: string, definitions: Record<string, unknown>) => ({
  name,
  schemata: { type: "object", properties: { p: { $ref: "#/definitions/money" } }, definitions },
  about: [],
});

describe("names", () => {
  test("come from the actions, and are made unique", () => {
    expect(namesOf("user.created", "user_created", "user-created", "UserCreated.v2")).toEqual([
      "UserCreated",
      "UserCreated2",
      "UserCreated3",
      "UserCreatedV2",
    ]);
    expect(namesOf("2fa.enabled", "-", "_", "string", "delivery")).toEqual([
      "_2faEnabled",
      "_",
      "_2",
      "String",
      "Delivery2",
    ]);
  });

  test("belong to definitions too, shared by identical ones", () => {
    const money = { type: "object", properties: { amount: whole } };
    const shared = declarationsFor([uses("b", { money }), uses("a", { money, other: text })], []);
    expect(shared.source.match(/type Money /g)).toHaveLength(1);
    const apart = declarationsFor(
      [uses("b", { money }), uses("a", { money: text }), uses("c", { money })],
      [],
    );
    expect(apart.source).toContain("export type Money = {");
    expect(apart.source).toContain("export type AMoney = string;");
    expect(apart.source).not.toMatch(/type [BC]Money/);
    // The same words may stand for something else by what they refer to.
    const deeper = declarationsFor([uses("b", listOf(text)), uses("a", listOf(whole))], []);
    expect(deeper.source).toContain("export type Money = Item[];");
    expect(deeper.source).toContain("export type AMoney = AItem[];");
    const like = declarationsFor([uses("money", { money })], []);
    expect(like.source).toContain("export type MoneyMoney = {");
  });

  test("follow references, also circular ones", () => {
    expect(declared({ properties: { a: { $ref: "#" }, b: { $ref: "#/properties/c" }, c: text } })).toBe(
      "export type X = { a?: X; b?: XPropertiesC; c?: string; }; export type XPropertiesC = string;",
    );
    expect(
      declared({
        $ref: "#/definitions/tree",
        definitions: { tree: { type: "array", items: { anyOf: [{ $ref: "#/definitions/tree" }, text] } } },
      }),
    ).toBe("export type X = Tree; export type Tree = (Tree | string)[];");
  });
});

const commented = (description: string, title?: string): string =>
  declarationsFor([{ name: "x", schemata: { type: "object", title, description }, about: ["About."] }], [])
    .source;

describe("comments", () => {
  test("hold the title and the description", () => {
    expect(commented("What it is.\n\nAnd more.", "Title")).toMatch(
      /^\/\*\*\n \* Title\n \* What it is\.\n \*\n \* And more\.\n \* About\.\n \*\/\nexport type X/,
    );
    expect(typeOf({ ...text, description: "One line." })).toContain("One line.");
  });

  test("cannot be closed by the schema's text", async () => {
    const hostile = [
      "*/ export const stolen: never = 1; /*",
      "a\u2028*/ b",
      "**/",
      "@ts-ignore",
      "*\\/",
      "\u202e/* @ts-nocheck */",
      `${"long ".repeat(60)}*/`,
    ];
    const sources = hostile.map((words, index) => {
      const schemata = { type: "object", description: words, properties: { a: { ...text, title: words } } };
      return declarationsFor([{ name: `x${index}`, schemata, about: [words] }], []).source;
    });
    for (const source of sources) expect(source).not.toMatch(/stolen[^*]*$|\u202e|\u2028|[^\\]@ts/);
    expect(await compilerComplaints(sources.join("\n"))).toEqual([]);
    // And what a comment stands over is checked.
    const broken = `${sources[3]}\nexport const wrong: X3 = { a: 1 };`;
    expect((await compilerComplaints(broken)).length).toBeGreaterThan(0);
  });
});

/** Odd and hard, each to be compiled. */
const ODD: readonly Record<string, unknown>[] = [
  {},
  { type: ["object", "string"] },
  { $ref: "#/definitions/a", definitions: { a: { properties: { b: { $ref: "#/definitions/a" } } } } },
  {
    properties: {
      "*/": text,
      "\u2028": text,
      __proto__x: text,
      'quo"te': { const: "\u202e*/" },
      "a\nb": text,
    },
  },
  JSON.parse(
    '{"properties": {"__proto__": {"type": "string"}, "constructor": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}}',
  ) as Record<string, unknown>,
  {
    properties: { a: { $ref: "#/definitions/l" } },
    definitions: { l: { type: "array", items: [text], additionalItems: { $ref: "#/definitions/l" } } },
  },
  {
    properties: { a: { $ref: "#/definitions/m" } },
    definitions: {
      m: { type: "object", additionalProperties: { anyOf: [{ $ref: "#/definitions/m" }, { type: "null" }] } },
    },
  },
  {
    properties: { string: { $ref: "#/definitions/string" } },
    definitions: { string: whole, 日本: text, "": text },
  },
  {
    properties: {
      a: { $ref: "#/definitions/日本" },
      b: { $ref: "#/definitions/a%20b" },
      c: { $ref: "#/definitions/%F0%9F%98%80" },
    },
    definitions: { 日本: text, "a b": text, "😀": text },
  },
  { properties: { a: { enum: Array.from({ length: 1_000 }, (_, index) => `value ${index}`) } } },
  Array.from({ length: 28 }, () => 0).reduce<Record<string, unknown>>(
    (inner) => ({ properties: { deep: inner } }),
    {},
  ),
  {
    allOf: [
      { properties: { a: text }, additionalProperties: text },
      { properties: { b: text } },
      { patternProperties: { "^c": text } },
    ],
  },
  {
    oneOf: [
      { properties: { k: { const: "a" } }, required: ["k"] },
      { properties: { k: { const: "b" }, x: { type: "array", items: { $ref: "#" } } }, required: ["k"] },
    ],
  },
];

test("declarations compile, alone and together", { timeout: 60_000 }, async () => {
  const schemas = ODD.map((schemata, index) => {
    checkSchema(schemata);
    return { name: `odd.${index}`, schemata, about: [] };
  });
  const { source } = declarationsFor(schemas, []);
  expect(await compilerComplaints(source)).toEqual([]);
});

const { "event types": typeCount } = lengthOf("schema/typescript/declarations");

test(`payloads of ${typeCount} event types of GitHub are of their types`, { timeout: 120_000 }, async () => {
  const types = someOf(githubTypes(), typeCount);
  expect(types).toHaveLength(typeCount);
  const { source, names } = declarationsFor(
    types.map(({ name, schemata }) => ({ name, schemata, about: [] })),
    [],
  );
  const values = types.map(({ schemata }, index) => {
    const { payload } = new Sampler(schemata).sample(5, 0);
    return `export const sample${index}: ${names[index]} = ${JSON.stringify(payload)};`;
  });
  expect(await compilerComplaints([source, ...values].join("\n"))).toEqual([]);
});

/** Values without the check for members too many, which is only for what is written in place. */
const LITERAL = `
type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;
declare function literal<const V>(value: V): Mutable<V>;
`;

test("no payload that a schema allows is refused by its type", { timeout: 60_000 }, async () => {
  const { source, names } = declarationsFor(
    SCHEMAS.map(([, schemata], index) => ({ name: `s${index}`, schemata, about: [] })),
    [],
  );
  const values = SCHEMAS.flatMap(([, schemata], index) => {
    const sampler = new Sampler(schemata);
    return [0, 1, 2, 3, 4, 5].map((stream) => {
      const { payload } = sampler.sample(11, stream);
      return `export const v${index}_${stream}: ${names[index]} = literal(${JSON.stringify(payload)});`;
    });
  });
  expect(await compilerComplaints([source, LITERAL, ...values].join("\n"))).toEqual([]);
  const wrong = "export const wrong: S1 = literal({ a: [true] });";
  expect(await compilerComplaints([source, LITERAL, wrong].join("\n"))).not.toEqual([]);
});

test("the same schemas give the same text", () => {
  const schemas = githubTypes()
    .slice(0, 9)
    .map(({ name, schemata }) => ({ name, schemata, about: [] }));
  expect(declarationsFor(structuredClone(schemas), [])).toEqual(declarationsFor(schemas, []));
});

// Schemas may be nested 64 deep: work that doubles with each level would never end.

const DEPTH = 60;

function nested(depth: number, around: (inner: object, level: number) => object): object {
  const innermost = { type: ["string", "object"] };
  return Array.from({ length: depth }).reduce<object>((inner, _, level) => around(inner, level), innermost);
}

const conditions = nested(DEPTH, (inner, level) => ({
  if: { required: [`name${level}`] },
  then: inner,
  else: { properties: { a: {} } },
}));

test("nested conditions are printed in time", () => {
  const source = sourceOf(conditions);
  expect(source).toContain("name0");
  expect(source.length).toBeLessThan(100_000);
});

test("lists of lists of alternatives are printed in time", () => {
  const lists = nested(20, (inner, level) => ({
    anyOf: [{ type: "array", items: inner }, { const: `a text that fills half a line, of level ${level}` }],
  }));
  expect(sourceOf({ properties: { a: lists } })).toContain("of level 19");
});
