import { isDeepStrictEqual } from "node:util";
import { compileSchema, type Validator } from "../../../src/schema/validate/compile.ts";
import { words } from "../../support/words.ts";
import type { Json } from "./random-schemas.ts";

/**
 * What the rules of docs/compatibility.md say of one payload, by means of the compiled schemas only: nothing here is
 * shared with the comparison it judges.
 */
export class Judge {
  readonly #old: Json;
  readonly #next: Json;
  readonly #accepts: Record<"old" | "next" | "reader", (payload: unknown) => boolean>;

  constructor(old: Json, next: Json) {
    this.#old = old;
    this.#next = next;
    const [before, after] = [compileSchema(old), compileSchema(next)];
    let reader: Validator | undefined;
    this.#accepts = {
      old: (payload) => before.validate(payload) === undefined,
      next: (payload) => after.validate(payload) === undefined,
      reader: (payload) => (reader ??= compileSchema(readerOf(old))).validate(payload) === undefined,
    };
  }

  /** The old schema accepts it, the new one does not, and it uses no name that only the new one mentions. */
  breaksProducer(payload: Json): boolean {
    const { old, next } = this.#accepts;
    return old(payload) && !next(payload) && !this.#usesNewName(payload, [this.#old], [this.#next]);
  }

  /** The new schema accepts it, and who reads by the old one and passes over unknown members does not. */
  breaksConsumer(payload: Json): boolean {
    return this.#accepts.next(payload) && !this.#accepts.reader(payload);
  }

  accepted(payload: Json): { old: boolean; next: boolean } {
    return { old: this.#accepts.old(payload), next: this.#accepts.next(payload) };
  }

  #usesNewName(value: unknown, old: readonly unknown[], next: readonly unknown[]): boolean {
    const before = inPlace(old, this.#old, true);
    const after = inPlace(next, this.#next, false);
    if (Array.isArray(value)) {
      return value.some((item, index) =>
        this.#usesNewName(item, itemsOf(before, index), itemsOf(after, index)),
      );
    }
    if (typeof value !== "object" || value === null) return false;
    return Object.entries(value).some(([name, member]) => {
      const isNew = after.some((schema) => {
        const properties = (schema["properties"] ?? {}) as Json;
        return Object.hasOwn(properties, name) && !allowsNothing(properties[name], this.#next);
      });
      if (isNew && !before.some((schema) => mentions(schema, name))) return true;
      return this.#usesNewName(member, membersOf(before, name), membersOf(after, name));
    });
  }
}

/** All schemas that look at the same value. */
function inPlace(schemas: readonly unknown[], document: Json, negated: boolean): Json[] {
  const found: Json[] = [];
  const visit = (schema: unknown): void => {
    if (typeof schema !== "object" || schema === null || found.includes(schema as Json)) return;
    const one = schema as Json;
    if (typeof one["$ref"] === "string") {
      visit(referred(one["$ref"], document));
      return;
    }
    found.push(one);
    for (const keyword of ["allOf", "anyOf", "oneOf"]) ((one[keyword] ?? []) as unknown[]).forEach(visit);
    for (const keyword of ["then", "else", ...(negated ? ["not", "if"] : [])]) visit(one[keyword]);
    for (const needed of Object.values((one["dependencies"] ?? {}) as Json))
      if (!Array.isArray(needed)) visit(needed);
  };
  schemas.forEach(visit);
  return found;
}

/** What `#` or `#/definitions/name` leads to. */
function referred(reference: string, document: Json): unknown {
  return reference === "#" ? document : (document["definitions"] as Json)[reference.slice(14)];
}

/** Whether it says in so many words that nothing is allowed. */
function allowsNothing(schema: unknown, document: Json, above: readonly unknown[] = []): boolean {
  if (typeof schema !== "object" || schema === null) return schema === false;
  if (above.includes(schema)) return false;
  const nothing = (inner: unknown): boolean => allowsNothing(inner, document, [...above, schema]);
  const one = schema as Json;
  if (typeof one["$ref"] === "string") return nothing(referred(one["$ref"], document));
  return (
    ("not" in one && (one["not"] === true || isDeepStrictEqual(one["not"], {}))) ||
    ((one["allOf"] ?? []) as unknown[]).some(nothing) ||
    ["anyOf", "oneOf"].some((keyword) => keyword in one && (one[keyword] as unknown[]).every(nothing))
  );
}

function membersOf(schemas: readonly Json[], name: string): unknown[] {
  return schemas.flatMap((schema) => {
    const properties = (schema["properties"] ?? {}) as Json;
    const patterns = Object.entries((schema["patternProperties"] ?? {}) as Json);
    const held = [
      ...(Object.hasOwn(properties, name) ? [properties[name]] : []),
      ...patterns.filter(([pattern]) => new RegExp(pattern, "u").test(name)).map(([, inner]) => inner),
    ];
    return held.length > 0 ? held : [schema["additionalProperties"]];
  });
}

function itemsOf(schemas: readonly Json[], index: number): unknown[] {
  return schemas.flatMap(({ items, additionalItems, contains }) => [
    Array.isArray(items) ? ((items as unknown[])[index] ?? additionalItems) : items,
    contains,
  ]);
}

function mentions(schema: Json, name: string): boolean {
  const listed = [schema["properties"], schema["dependencies"]].some((map) => Object.hasOwn(map ?? {}, name));
  const needed = Object.values((schema["dependencies"] ?? {}) as Json)
    .filter(Array.isArray)
    .flat();
  const others = schema["additionalProperties"];
  const values = [...((schema["enum"] ?? []) as unknown[]), schema["const"]];
  const names = schema["propertyNames"] as Json | undefined;
  return (
    listed ||
    ((schema["required"] ?? []) as unknown[]).includes(name) ||
    needed.includes(name) ||
    Object.keys(schema["patternProperties"] ?? {}).some((pattern) => new RegExp(pattern, "u").test(name)) ||
    (typeof others === "object" && !isDeepStrictEqual(others, {})) ||
    (typeof names === "object" && ((names["enum"] ?? []) as unknown[]).includes(name)) ||
    values.some((value) => typeof value === "object" && value !== null && Object.hasOwn(value, name))
  );
}

/**
 * The schema a consumer reads by: objects are open to members it does not know. Where a schema is turned around it stays
 * as it is, since there an open object would allow less.
 */
export function readerOf(document: Json): Json {
  const { definitions = {}, ...root } = document;
  const kept = Object.entries(definitions as Json);
  return {
    ...(opened(root) as Json),
    definitions: {
      "as-is": asIs(root),
      ...Object.fromEntries(kept.map(([name, schema]) => [name, asIs(schema)])),
      ...Object.fromEntries(kept.map(([name, schema]) => [`open-${name}`, opened(schema)])),
    },
  };
}

function opened(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return schema;
  const one = { ...(schema as Json) };
  if (typeof one["$ref"] === "string") {
    return one["$ref"] === "#" ? one : { $ref: one["$ref"].replace("#/definitions/", "#/definitions/open-") };
  }
  if (one["additionalProperties"] === false) delete one["additionalProperties"];
  for (const keyword of words("additionalProperties propertyNames additionalItems contains then else")) {
    if (keyword in one) one[keyword] = opened(one[keyword]);
  }
  for (const keyword of ["properties", "patternProperties", "dependencies"]) {
    if (!(keyword in one)) continue;
    one[keyword] = Object.fromEntries(
      Object.entries(one[keyword] as Json).map(([name, inner]) => [
        name,
        Array.isArray(inner) ? inner : opened(inner),
      ]),
    );
  }
  for (const keyword of ["allOf", "anyOf"])
    if (keyword in one) one[keyword] = (one[keyword] as unknown[]).map(opened);
  if ("items" in one)
    one["items"] = Array.isArray(one["items"]) ? one["items"].map(opened) : opened(one["items"]);
  for (const keyword of ["not", "if"]) if (keyword in one) one[keyword] = asIs(one[keyword]);
  const { oneOf, ...rest } = one;
  if (oneOf === undefined) return one;
  const branches = oneOf as unknown[];
  const ways = branches.map((branch, index) => ({
    allOf: [
      opened(branch),
      ...branches.filter((_, other) => other !== index).map((other) => ({ not: asIs(other) })),
    ],
  }));
  return { ...rest, allOf: [...((rest["allOf"] ?? []) as unknown[]), { anyOf: ways }] };
}

/** A copy whose references lead to the schemas as they are. */
function asIs(schema: unknown): unknown {
  return JSON.parse(
    JSON.stringify(schema).replaceAll('"$ref":"#"', '"$ref":"#/definitions/as-is"'),
  ) as unknown;
}
