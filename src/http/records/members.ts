import type { JsonSchema } from "../route.ts";

/** What records and answers are made of, for the OpenAPI document. */

export const rowid: JsonSchema = {
  type: "integer",
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "Assigned by the service; only grows, and after a restore far beyond 32 bits.",
};
export const timestamp: JsonSchema = {
  type: "string",
  format: "date-time",
  description: "ISO 8601 UTC with milliseconds.",
};
export const nullableTimestamp: JsonSchema = { type: ["string", "null"], format: "date-time" };
export const text: JsonSchema = { type: "string" };
export const count: JsonSchema = { type: "integer", minimum: 0 };

/** An object that has exactly these members. */
export function record(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, required, additionalProperties: false };
}

export function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** `{ data: <record> }` */
export function one(name: string, meta?: JsonSchema): JsonSchema {
  return meta === undefined ? record({ data: ref(name) }) : record({ data: ref(name), meta }, ["meta"]);
}

/** `{ data: [<record>, …] }` */
export function many(name: string, meta?: JsonSchema): JsonSchema {
  const data: JsonSchema = { type: "array", items: ref(name) };
  return meta === undefined ? record({ data }) : record({ data, meta });
}

/** What every failure has. */
export const failure = {
  error: { type: "string", description: "A sentence: what went wrong, and what to do." },
  details: {
    type: "object",
    description:
      "Where one field is at fault: `{ field, message, value }`. Where a payload does not conform to its action's schema also `errors`, a list of the same form: the rules that it breaks, at most 20 (of a batch for its first 20 such items; of others, and while evreg has much to check, the first alone), and no more than come to 16 KiB. A name of more than 128 characters in `field`, and a `field` of more than 2,048, have `…` for their middle; `message` and `value` are cut after 1 KiB. What a batch refuses past 1 MiB of such answers, or while too many large answers are on their way, has no `errors`, and each text is cut after 256 bytes.",
    additionalProperties: true,
  },
  code: { type: "integer", description: "The HTTP status." },
} as const;
