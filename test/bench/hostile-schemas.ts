/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */

/** A schema made to take long, with a payload made to take long with it. */
export interface HostileSchema {
  readonly name: string;
  readonly schemata: object;
  readonly payload: object;
  /** What it is compared with; the same with one more member required where nothing else is said. */
  readonly next?: object;
}

/** Members and items a hostile payload has. */
const MANY = 20_000;

const leaf = { type: ["string", "null"], minLength: 1, maxLength: 9 };
const many = <T>(count: number, of: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => of(index));
const map = (count: number, of: (index: number) => unknown): Record<string, unknown> =>
  Object.fromEntries(many(count, (index) => [`p${index}`, of(index)]));
const nested = (levels: number): object =>
  JSON.parse('{"a":'.repeat(levels) + "0" + "}".repeat(levels)) as object;
const nestedLists = (levels: number): object => JSON.parse("[".repeat(levels) + "]".repeat(levels)) as object;
const chain = (length: number, next: (pointer: string) => object, last: object): object => ({
  $ref: "#/definitions/d0",
  definitions: Object.fromEntries([
    ...many(length, (index) => [`d${index}`, next(`#/definitions/d${index + 1}`)]),
    [`d${length}`, last],
  ]),
});
/** The same schema with some of its text replaced. */
const changed = (schemata: object, from: string, to: string): object =>
  JSON.parse(JSON.stringify(schemata).replaceAll(from, to)) as object;
const codes = { properties: map(1_000, (index) => ({ pattern: `^(a|b${index}){1,9}x$` })) };
const neighbours = many(170, (index) => String.fromCodePoint(0x4e00 + 4 * index)).map(
  (first) => `[${first}-${String.fromCodePoint(first.codePointAt(0)! + 2)}]?`,
);
const tagged = {
  properties: {
    a: {
      oneOf: many(250, (index) => ({
        type: "object",
        properties: { kind: { const: `k${index}` }, value: { type: "string" }, ...map(12, () => leaf) },
        required: ["kind"],
      })),
    },
  },
};
const leveled = (levels: number, of: (inner: object) => object): object =>
  levels === 0 ? { type: "string" } : of(leveled(levels - 1, of));
const wide = leveled(30, (inner) => ({
  type: "object",
  properties: { ...map(160, () => ({ type: "string" })), inner },
  required: [...Object.keys(map(160, () => 0)), "inner"],
}));
const demanding = { allOf: many(4_990, (index) => ({ required: [`p${index}`] })) };
const patterned = { patternProperties: map(4_990, () => ({ type: "string" })) };
const required = { required: many(24_000, (index) => `r${index}`) };

export const HOSTILE_SCHEMAS: readonly HostileSchema[] = [
  {
    name: "pattern",
    schemata: { properties: { a: { pattern: "^(a+)+$" }, b: { pattern: "^(\\w+\\s?)*$" } } },
    payload: { a: `${"a".repeat(400_000)}!`, b: `${"word ".repeat(80_000)}!` },
  },
  {
    name: "patterns",
    schemata: { properties: map(60, (index) => ({ pattern: `^(a|b${index}){1,9}x$` })) },
    payload: map(60, () => "a".repeat(10_000)),
  },
  {
    name: "double-references",
    schemata: chain(30, ($ref) => ({ allOf: [{ $ref }, { $ref }] }), { minProperties: 0 }),
    payload: {},
  },
  {
    name: "doubling",
    schemata: { properties: { a: { oneOf: [{ $ref: "#" }, { $ref: "#" }] } } },
    payload: nested(60),
  },
  {
    name: "long-chain",
    schemata: chain(900, ($ref) => ({ allOf: [{ $ref }] }), { type: "object" }),
    payload: nested(60),
  },
  {
    name: "unique-items",
    schemata: { properties: { list: { uniqueItems: true } } },
    payload: { list: many(MANY, (index) => ({ id: index, of: { b: 1, a: index % 7 } })) },
  },
  {
    name: "deep",
    schemata: { additionalProperties: { $ref: "#" }, maxProperties: 3 },
    payload: nested(62),
  },
  {
    name: "too-deep",
    schemata: JSON.parse('{"not":'.repeat(70) + "{}" + "}".repeat(70)) as object,
    payload: {},
  },
  {
    name: "properties",
    schemata: { properties: map(3_800, () => leaf) },
    payload: map(10_000, () => "text"),
  },
  {
    name: "too-many-properties",
    schemata: { properties: map(10_000, () => ({})) },
    payload: {},
  },
  {
    name: "pattern-properties",
    schemata: { patternProperties: map(3_800, () => leaf), additionalProperties: false },
    payload: map(10_000, () => "text"),
  },
  {
    name: "one-of",
    schemata: { oneOf: many(256, (index) => ({ properties: { a: { const: index } }, required: ["a"] })) },
    payload: { a: 255 },
  },
  {
    name: "if",
    schemata: {
      allOf: many(1_200, (index) => ({ if: { required: [`p${index}`] }, then: { required: ["a"] } })),
    },
    payload: map(10_000, () => 1),
  },
  {
    name: "enum",
    schemata: { properties: { list: { items: { enum: many(1_000, (index) => ({ a: index })) } } } },
    payload: { list: many(MANY, (index) => ({ a: index % 1_000 })) },
  },
  {
    name: "texts",
    schemata: codes,
    payload: { p1: "ab1x" },
    next: changed(codes, "{1,9}", "{1,8}"),
  },
  {
    name: "long-pattern",
    schemata: { properties: { a: { pattern: `^(${"abcdefghij".repeat(100)}){1000}$` } } },
    payload: {},
  },
  {
    name: "optional-classes",
    schemata: { properties: { a: { pattern: `^${neighbours.join("")}$` } } },
    payload: {},
  },
  {
    name: "misspelt",
    schemata: Object.fromEntries(many(7_000, (index) => [`additionalProperty${index}x`, 1])),
    payload: {},
  },
  {
    name: "levels",
    schemata: wide,
    payload: {},
    next: changed(wide, '"string"', '"integer"'),
  },
  {
    name: "tagged",
    schemata: tagged,
    payload: { a: { kind: "k249" } },
    next: changed(tagged, '"value":{"type":"string"}', '"value":{"type":"integer"}'),
  },
  {
    name: "tuples",
    schemata: { properties: map(16, () => ({ items: many(250, () => leaf) })) },
    payload: { p0: many(250, () => "text") },
  },
  {
    name: "all-of",
    schemata: demanding,
    payload: map(4_990, () => 1),
    next: changed(demanding, '"p7"', '"other"'),
  },
  {
    name: "names-by-pattern",
    schemata: patterned,
    payload: map(1_000, () => "text"),
    next: changed(patterned, '"string"', '"integer"'),
  },
  { name: "required", schemata: { minProperties: 1 }, payload: { r1: 1 }, next: required },
  {
    name: "needed-names",
    schemata: { dependencies: map(25, () => many(1_200, (index) => `n${index}`)) },
    payload: { p0: 1 },
  },
  {
    name: "definitions-in-definitions",
    schemata: leveled(18, (inner) => ({ $defs: { inner, ...map(260, () => ({ type: "string" })) } })),
    payload: {},
  },
  ...Object.entries({
    "empty-objects": { a: many(340_000, () => ({})) },
    "nested-lists": { a: many(16_000, () => nestedLists(31)) },
    "short-names": map(95_000, () => 1),
  }).map(([name, payload]): HostileSchema => ({
    name,
    schemata: { type: "object" },
    payload,
  })),
];
