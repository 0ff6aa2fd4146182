/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
export const text = { type: "string" };
export const whole = { type: "integer" };

/** The member `a` under a schema, so that values of every type can be looked at. */
export const holding = (schema: unknown, definitions = {}) => ({
  type: "object",
  required: ["a"],
  properties: { a: schema },
  definitions,
});

export const tree = {
  type: "object",
  required: ["children"],
  properties: { children: { type: "array", items: { $ref: "#/definitions/tree" } } },
};

/** The same under what a list, or a text, is held to. */
const listOf = (rest: object) => holding({ type: "array", ...rest });
const textOf = (rest: object) => holding({ ...text, ...rest });

const FORMATS =
  "date time date-time duration uri uri-reference uri-template email hostname ipv4 ipv6 regex uuid json-pointer relative-json-pointer";

/** By keyword, each by itself and with what makes it hard. */
export const SCHEMAS: readonly (readonly [name: string, schema: Record<string, unknown>])[] = [
  ["nothing said", {}],
  ["type lists", holding({ type: ["string", "null", "integer"] })],
  ["no type, but keywords of one", holding({ minLength: 3, pattern: "^[a-z]+$" })],
  ["enum", holding({ enum: [1, "a", null, { b: [2] }] })],
  ["enum narrowed by type", holding({ enum: [1, "a", null], type: "string" })],
  ["enum narrowed by what stands beside it", holding({ enum: ["a", "abcd", 7], minLength: 2 })],
  ["enums that overlap in one", holding({ allOf: [{ enum: [1, 2, 3] }, { enum: [3, 4] }] })],
  ["const", holding({ const: { x: [1, "y"] } })],
  ["bounds", holding({ type: "integer", minimum: 17, maximum: 18 })],
  ["exclusive bounds", holding({ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 0.001 })],
  ["one number", holding({ type: "number", minimum: 0.3, maximum: 0.3 })],
  ["only below", holding({ type: "integer", maximum: -40 })],
  ["multiples", holding({ type: "number", multipleOf: 0.01, minimum: 3 })],
  [
    "multiples of two",
    holding({ allOf: [{ multipleOf: 4 }, { multipleOf: 6 }], type: "number", minimum: 1 }),
  ],
  ["whole multiples of a fraction", holding({ type: "integer", multipleOf: 2.5, minimum: 1 })],
  ["lengths", textOf({ minLength: 40, maxLength: 41 })],
  ["length of one", textOf({ minLength: 1, maxLength: 1 })],
  ["no length", textOf({ maxLength: 0 })],
  ["a pattern", textOf({ pattern: "^[A-Z]{3}-\\d{4}$" })],
  ["a pattern with lengths", textOf({ pattern: "^[a-f0-9]+$", minLength: 40, maxLength: 40 })],
  ["a pattern with alternatives", textOf({ pattern: "^(?:cat|dog|[^a-z ]{2,4})(\\.\\w+)*$" })],
  ["a pattern found anywhere", textOf({ pattern: "b+c\\b", minLength: 12 })],
  ["a pattern of other letters", textOf({ pattern: "^\\p{Lu}[\\u0400-\\u04ff]{2}\\s.$" })],
  ["a pattern with escapes", textOf({ pattern: "^\\[\\t\\x41\\u0042\\/\\-]$" })],
  ["two patterns", holding({ allOf: [{ pattern: "^x" }, { pattern: "^x[0-9]$" }], type: "string" })],
  ["tuples", listOf({ items: [text, whole], additionalItems: false, minItems: 2 })],
  ["tuples that go on", listOf({ items: [text], additionalItems: whole, minItems: 4 })],
  ["lists", listOf({ items: whole, minItems: 3, maxItems: 3 })],
  ["lists without repetition", listOf({ items: { enum: [1, 2, 3] }, uniqueItems: true, minItems: 3 })],
  ["lists that must contain a value", listOf({ contains: { const: 7 }, items: whole, minItems: 2 })],
  ["an empty list", listOf({ items: false })],
  ["required but not listed", { type: "object", required: ["a", "__proto__", "constructor"] }],
  [
    "closed",
    { type: "object", required: ["a"], properties: { a: text, b: whole }, additionalProperties: false },
  ],
  ["maps", holding({ type: "object", additionalProperties: whole, minProperties: 4 })],
  [
    "maps by pattern",
    holding({
      type: "object",
      patternProperties: { "^x-[0-9]{2}$": whole },
      additionalProperties: false,
      minProperties: 3,
    }),
  ],
  [
    "names with a rule",
    holding({ type: "object", propertyNames: { pattern: "^[a-z]{2}$" }, minProperties: 3 }),
  ],
  [
    "several patterns and a length",
    holding({
      allOf: [
        { type: "string", pattern: "[A-Z]" },
        { pattern: "[0-9]{2}" },
        { pattern: "^[A-Za-z0-9]+$", minLength: 12 },
      ],
    }),
  ],
  ["a pattern of many characters", textOf({ pattern: "^\\p{L}{3,9}$" })],
  ["a maximum of properties", { properties: { a: text, b: text, c: text }, maxProperties: 1 }],
  [
    "properties and a pattern for them",
    { required: ["ab"], properties: { ab: text }, patternProperties: { "^a": { minLength: 20 } } },
  ],
  [
    "dependencies by name",
    { required: ["a"], dependencies: { a: ["b"], b: ["c"] }, properties: { c: whole } },
  ],
  [
    "dependencies by schema",
    {
      required: ["a"],
      dependencies: { a: { required: ["d"], properties: { d: whole } } },
      properties: { a: text },
    },
  ],
  ["a dependency that cannot hold", { properties: { a: text, b: text }, dependencies: { a: false } }],
  [
    "allOf",
    {
      allOf: [
        { required: ["a"], properties: { a: text } },
        { required: ["b"], properties: { b: whole } },
      ],
    },
  ],
  ["anyOf with one way", holding({ anyOf: [false, { type: "string", minLength: 90, maxLength: 3 }, whole] })],
  ["oneOf that overlap", holding({ oneOf: [{ type: "number" }, { type: "integer" }] })],
  [
    "oneOf by a discriminator",
    {
      required: ["kind"],
      properties: { kind: { enum: ["a", "b", "c"] } },
      oneOf: [
        { properties: { kind: { const: "a" }, x: text }, required: ["x"] },
        { properties: { kind: { const: "b" }, y: whole }, required: ["y"] },
      ],
    },
  ],
  ["not a value", holding({ type: "integer", minimum: 1, maximum: 2, not: { const: 1 } })],
  ["not with a name", { properties: { a: text, b: text }, not: { required: ["a"] } }],
  [
    "if, then and else",
    {
      required: ["k"],
      properties: { k: { enum: ["a", "b"] }, x: whole, y: text },
      if: { properties: { k: { const: "a" } } },
      then: { required: ["x"] },
      else: { required: ["y"] },
    },
  ],
  ["references", holding({ $ref: "#/definitions/id" }, { id: { type: "string", format: "uuid" } })],
  ["references by $id", holding({ $ref: "#name" }, { x: { $id: "#name", type: "integer" } })],
  ["recursion", holding({ $ref: "#/definitions/tree" }, { tree })],
  [
    "recursion to the root",
    {
      type: "object",
      required: ["next"],
      properties: { next: { anyOf: [{ $ref: "#" }, { type: "null" }] } },
    },
  ],
  [
    "recursion that must branch",
    holding(
      { $ref: "#/definitions/node" },
      {
        node: {
          anyOf: [
            {
              type: "object",
              required: ["l", "r"],
              properties: { l: { $ref: "#/definitions/node" }, r: { $ref: "#/definitions/node" } },
            },
            whole,
          ],
        },
      },
    ),
  ],
  ["a format of whole numbers", holding({ type: "number", format: "int32" })],
  ["a format of whole numbers with wide bounds", holding({ type: "number", format: "int64", maximum: 1e30 })],
  ["unknown keywords and formats", textOf({ format: "no-such", nullable: true })],
  ["beside a reference nothing counts", holding({ $ref: "#/definitions/id", minLength: 900 }, { id: text })],
  ...FORMATS.split(" ").map((format) => [`format ${format}`, textOf({ format })] as const),
];
