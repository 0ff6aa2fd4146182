/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import type { Json } from "./random-schemas.ts";

/** Kinds of edit a person makes to one schema of a document; each answers whether it had anything to do there. */
export const PERSONS_EDITS: Readonly<Record<string, (schema: Json) => boolean>> = {
  "add an optional property": (schema) =>
    inProperties(schema, (properties) => (properties["added_later"] = { type: "string" })),
  "add an optional object": (schema) =>
    inProperties(schema, (properties) => {
      properties["added_later"] = {
        type: "object",
        required: ["id"],
        properties: { id: { type: "integer" } },
      };
    }),
  "add a required property": (schema) =>
    inProperties(schema, (properties) => {
      properties["added_later"] = { type: "string" };
      schema["required"] = [...listOf(schema["required"]), "added_later"];
    }),
  "make a property required": (schema) =>
    inProperties(schema, (properties) => {
      schema["required"] = [...new Set([...listOf(schema["required"]), Object.keys(properties).at(-1)])];
    }),
  "make a property optional": (schema) =>
    when(
      listOf(schema["required"]).length > 0,
      () => (schema["required"] = listOf(schema["required"]).slice(1)),
    ),
  "remove a property": (schema) => inProperties(schema, (properties) => remove(schema, properties)),
  "rename a property": (schema) =>
    inProperties(schema, (properties) => {
      properties["renamed"] = remove(schema, properties);
    }),
  "close an object": (schema) =>
    when(
      isObject(schema) && schema["additionalProperties"] !== false,
      () => (schema["additionalProperties"] = false),
    ),
  "open an object": (schema) =>
    when(schema["additionalProperties"] === false, () => delete schema["additionalProperties"]),
  "change a type": (schema) => when(isPlain(schema), () => replace(schema, { type: "boolean" })),
  "change a type to an object": (schema) => when(isPlain(schema), () => replace(schema, { type: "object" })),
  "allow null": (schema) => when(isPlain(schema), () => (schema["type"] = [schema["type"], "null"])),
  "forbid null": (schema) =>
    when(Array.isArray(schema["type"]) && schema["type"].includes("null"), () => {
      schema["type"] = listOf(schema["type"]).find((type) => type !== "null");
    }),
  "widen integer to number": (schema) =>
    when(schema["type"] === "integer", () => (schema["type"] = "number")),
  "add an enum value": (schema) =>
    when("enum" in schema, () => (schema["enum"] = [...listOf(schema["enum"]), "added_later"])),
  "drop an enum value": (schema) =>
    when(listOf(schema["enum"]).length > 1, () => (schema["enum"] = listOf(schema["enum"]).slice(1))),
  "turn a text into an enum": (schema) => when(isText(schema), () => (schema["enum"] = ["a", "b"])),
  "add a maximum length": (schema) => when(isText(schema), () => (schema["maxLength"] = 40)),
  "add a minimum length": (schema) => when(isText(schema), () => (schema["minLength"] = 2)),
  "add a pattern": (schema) => when(isText(schema), () => (schema["pattern"] = "^[A-Za-z0-9_-]+$")),
  "change a pattern": (schema) =>
    when("pattern" in schema, () => (schema["pattern"] = "^[A-Z]{2}-[0-9]{6}$")),
  "drop a pattern": (schema) => when("pattern" in schema, () => delete schema["pattern"]),
  "add a format": (schema) => when(isText(schema), () => (schema["format"] = "email")),
  "drop a format": (schema) => when("format" in schema, () => delete schema["format"]),
  "change a format": (schema) => when("format" in schema, () => (schema["format"] = "ipv4")),
  "add a minimum": (schema) => when(isNumber(schema), () => (schema["minimum"] = 10)),
  "add a maximum": (schema) => when(isNumber(schema), () => (schema["maximum"] = 10)),
  "drop a bound": (schema) =>
    when(
      ["minimum", "maximum", "maxLength", "minLength", "minItems", "maxItems"].some(
        (keyword) => keyword in schema,
      ),
      () => {
        for (const keyword of ["minimum", "maximum", "maxLength", "minLength", "minItems", "maxItems"])
          delete schema[keyword];
      },
    ),
  "ask for whole cents": (schema) => when(schema["type"] === "number", () => (schema["multipleOf"] = 0.01)),
  "ask for an item": (schema) => when(schema["type"] === "array", () => (schema["minItems"] = 1)),
  "limit a list": (schema) => when(schema["type"] === "array", () => (schema["maxItems"] = 3)),
  "make items unique": (schema) => when(schema["type"] === "array", () => (schema["uniqueItems"] = true)),
  "add a form": (schema) =>
    inForms(schema, (forms) =>
      forms.push({ type: "object", properties: { kind: { const: "added" } }, required: ["kind"] }),
    ),
  "drop a form": (schema) => inForms(schema, (forms) => forms.length > 1 && forms.pop()),
};

function when(isSo: boolean, change: () => unknown): boolean {
  if (isSo) change();
  return isSo;
}

function inProperties(schema: Json, change: (properties: Json) => unknown): boolean {
  return when(isObject(schema), () => change(schema["properties"] as Json));
}

function inForms(schema: Json, change: (forms: unknown[]) => unknown): boolean {
  const forms = schema["oneOf"] ?? schema["anyOf"];
  return when(Array.isArray(forms), () => change(forms as unknown[]));
}

function isObject({ properties }: Json): boolean {
  return properties !== undefined && Object.keys(properties as Json).length > 0;
}

function isPlain({ type }: Json): boolean {
  return type === "string" || type === "integer" || type === "number";
}

function isText(schema: Json): boolean {
  return (
    schema["type"] === "string" &&
    ["enum", "const", "format", "pattern"].every((keyword) => !(keyword in schema))
  );
}

function isNumber(schema: Json): boolean {
  return (schema["type"] === "integer" || schema["type"] === "number") && !("enum" in schema);
}

function replace(schema: Json, by: Json): void {
  for (const keyword of Object.keys(schema)) delete schema[keyword];
  Object.assign(schema, by);
}

function remove(schema: Json, properties: Json): unknown {
  const [name = ""] = Object.keys(properties);
  const removed = properties[name];
  delete properties[name];
  const required = listOf(schema["required"]).filter((one) => one !== name);
  if (required.length === 0) delete schema["required"];
  else schema["required"] = required;
  return removed;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

const money = {
  type: "object",
  properties: { amount: { type: "number", minimum: 0 }, currency: { type: "string", pattern: "^[A-Z]{3}$" } },
  required: ["amount", "currency"],
  additionalProperties: false,
};

/** Schemas as people write them for events. */
export const PERSONS_SCHEMAS: readonly Json[] = [
  {
    type: "object",
    required: ["id", "email", "status"],
    properties: {
      id: { type: "string", format: "uuid" },
      email: { type: "string", format: "email" },
      name: { type: "string", minLength: 1, maxLength: 80 },
      status: { enum: ["new", "active", "gone"] },
      age: { type: ["integer", "null"], minimum: 0 },
      tags: { type: "array", items: { type: "string" }, maxItems: 20 },
      address: {
        type: "object",
        properties: { zip: { type: "string" }, town: { type: "string" } },
        required: ["zip"],
      },
    },
  },
  {
    type: "object",
    additionalProperties: false,
    required: ["order", "lines", "total"],
    properties: {
      order: { type: "string", pattern: "^[A-Z]{2}-[0-9]{4,8}$" },
      total: { $ref: "#/definitions/money" },
      lines: {
        type: "array",
        minItems: 1,
        items: {
          type: "object",
          properties: {
            sku: { type: "string" },
            quantity: { type: "integer", minimum: 1 },
            price: { $ref: "#/definitions/money" },
          },
          required: ["sku", "quantity"],
        },
      },
      shipping: {
        anyOf: [{ type: "null" }, { type: "object", properties: { carrier: { type: "string" } } }],
      },
    },
    definitions: { money },
  },
  {
    type: "object",
    required: ["payment"],
    properties: {
      payment: {
        oneOf: [
          {
            type: "object",
            properties: { kind: { const: "card" }, last4: { type: "string", pattern: "^[0-9]{4}$" } },
            required: ["kind", "last4"],
          },
          {
            type: "object",
            properties: { kind: { const: "sepa" }, iban: { type: "string" } },
            required: ["kind"],
          },
          {
            type: "object",
            properties: { kind: { const: "cash" }, drawer: { type: "integer" } },
            required: ["kind"],
            additionalProperties: false,
          },
        ],
      },
      at: { type: "string", format: "date-time" },
    },
  },
  {
    type: "object",
    properties: {
      labels: { type: "object", additionalProperties: { type: "string", maxLength: 63 } },
      metrics: {
        type: "object",
        patternProperties: { "^[a-z_]+$": { type: "number" } },
        additionalProperties: false,
      },
      tree: { $ref: "#/definitions/node" },
    },
    definitions: {
      node: {
        type: "object",
        properties: {
          value: { type: "integer" },
          children: { type: "array", items: { $ref: "#/definitions/node" } },
        },
        required: ["value"],
      },
    },
  },
  {
    type: "object",
    allOf: [{ $ref: "#/definitions/base" }, { type: "object", properties: { note: { type: "string" } } }],
    definitions: {
      base: {
        type: "object",
        properties: { id: { type: "integer" }, source: { enum: ["web", "app"] } },
        required: ["id"],
      },
    },
  },
  {
    type: "object",
    properties: {
      country: { type: "string", minLength: 2, maxLength: 2 },
      vat: { type: "string" },
      company: { type: "string" },
      position: {
        type: "array",
        items: [{ type: "number" }, { type: "number" }],
        additionalItems: false,
        minItems: 2,
      },
    },
    dependencies: { company: ["vat"] },
    if: { properties: { country: { const: "DE" } }, required: ["country"] },
    then: { required: ["vat"] },
  },
];
