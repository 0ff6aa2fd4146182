import type { SeededRandom } from "../../support/seeded-random.ts";
import { words } from "../../support/words.ts";
import { NAMES, TEXTS } from "./random-schemas.ts";
import type { Json } from "./random-schemas.ts";

/** Texts of formats, each of more than one or of nearly one. */
const FORMATTED = [
  ...words("2026-01-31 2026-01-31T12:00:00Z 2026-01-31T12:00:00+01 12:00:00Z 12:00:00 192.0.2.1 a.example"),
  ...words("https://a.example/?q#f urn:x //a.example/b /{id} http://ä.example"),
  "2026-01-31 12:00:00",
  "a b",
];

/**
 * A payload that has a fair chance of conforming to a schema of the document, without any care that it does: the compiled
 * schemas judge it. Knows nothing of the comparison it is to try.
 */
export function payloadFor(document: Json, random: SeededRandom): Json {
  const made = new Payloads(document, random).value(document, 0);
  return typeof made === "object" && made !== null && !Array.isArray(made) ? (made as Json) : {};
}

class Payloads {
  readonly #document: Json;
  readonly #random: SeededRandom;

  constructor(document: Json, random: SeededRandom) {
    this.#document = document;
    this.#random = random;
  }

  value(schema: unknown, depth: number): unknown {
    if (depth > 5 || typeof schema !== "object" || schema === null) return this.#anything(depth);
    const one = this.#merged(schema as Json, 0);
    if ("const" in one) return one["const"];
    if (Array.isArray(one["enum"]) && this.#random.chance(0.9))
      return this.#random.pick(one["enum"] as unknown[]);
    const type = this.#random.chance(0.92) ? this.#typeOf(one, depth) : "any";
    switch (type) {
      case "object":
        return this.#object(one, depth);
      case "array":
        return this.#list(one, depth);
      case "string":
        return this.#text(one);
      case "integer":
      case "number":
        return this.#number(one, type);
      case "boolean":
        return this.#random.chance(0.5);
      case "null":
        return null;
      default:
        return this.#anything(depth);
    }
  }

  /** Follows references and takes some of what stands in combinations along. */
  #merged(schema: Json, round: number): Json {
    if (round > 6) return schema;
    const reference = schema["$ref"];
    if (typeof reference === "string") {
      const target =
        reference === "#" ? this.#document : (this.#document["definitions"] as Json)[reference.slice(14)];
      return typeof target === "object" && target !== null ? this.#merged(target as Json, round + 1) : {};
    }
    const parts: unknown[] = [...((schema["allOf"] ?? []) as unknown[])];
    for (const keyword of ["anyOf", "oneOf"]) {
      if (Array.isArray(schema[keyword])) parts.push(this.#random.pick(schema[keyword] as unknown[]));
    }
    for (const keyword of ["if", "then", "else"]) {
      if (schema[keyword] !== undefined && this.#random.chance(0.6)) parts.push(schema[keyword]);
    }
    for (const needed of Object.values((schema["dependencies"] ?? {}) as Json))
      if (!Array.isArray(needed) && this.#random.chance(0.5)) parts.push(needed);
    let one: Json = { ...schema };
    for (const part of parts) {
      if (typeof part !== "object" || part === null) continue;
      const inner = this.#merged(part as Json, round + 1);
      const properties = bothMaps(one["properties"], inner["properties"]);
      const patterns = bothMaps(one["patternProperties"], inner["patternProperties"]);
      const items = bothItems(one, inner);
      const required = [...((one["required"] ?? []) as string[]), ...((inner["required"] ?? []) as string[])];
      one = this.#random.chance(0.5) ? { ...one, ...inner } : { ...inner, ...one };
      if (items !== undefined) one["items"] = items;
      if (Object.keys(patterns).length > 0) one["patternProperties"] = patterns;
      if (Object.keys(properties).length > 0) one["properties"] = properties;
      if (required.length > 0) one["required"] = required;
    }
    return one;
  }

  #typeOf(schema: Json, depth: number): string {
    if (depth === 0) return "object";
    const { type } = schema;
    if (typeof type === "string") return type;
    if (Array.isArray(type)) return String(this.#random.pick(type as unknown[]));
    if ("properties" in schema || "required" in schema || "additionalProperties" in schema) return "object";
    if ("items" in schema || "contains" in schema || "minItems" in schema) return "array";
    if ("minLength" in schema || "pattern" in schema || "format" in schema) return "string";
    return "minimum" in schema || "maximum" in schema ? "number" : "any";
  }

  #object(schema: Json, depth: number): Json {
    const made: Json = {};
    const properties = (schema["properties"] ?? {}) as Json;
    const names = new Set((schema["required"] ?? []) as string[]);
    for (const name of Object.keys(properties)) if (this.#random.chance(0.6)) names.add(name);
    const isOfOthers = "additionalProperties" in schema || "patternProperties" in schema;
    while (this.#random.chance(isOfOthers ? 0.5 : 0.25))
      names.add(this.#random.pick([...NAMES, "other", "x9"]));
    for (const name of names) made[name] = this.value(this.#memberOf(schema, properties, name), depth + 1);
    return made;
  }

  #memberOf(schema: Json, properties: Json, name: string): unknown {
    const patterns = Object.entries((schema["patternProperties"] ?? {}) as Json);
    const held = patterns
      .filter(([pattern]) => new RegExp(pattern, "u").test(name))
      .map(([, inner]) => inner);
    if (Object.hasOwn(properties, name)) held.push(properties[name]);
    return held.length === 0 ? schema["additionalProperties"] : held.reduce(both);
  }

  #list(schema: Json, depth: number): unknown[] {
    const least = Number(schema["minItems"] ?? 0);
    const { items } = schema;
    // Far enough that the places of a tuple are reached, and one after them.
    const more = Array.isArray(items) ? items.length + 2 : 3;
    const length = least + (this.#random.chance(0.7) ? this.#random.whole(0, more - 1) : 0);
    return Array.from({ length }, (_, index) => {
      if (schema["contains"] !== undefined && this.#random.chance(0.4))
        return this.value(schema["contains"], depth + 1);
      return this.value(
        Array.isArray(items) ? (items[index] ?? schema["additionalItems"]) : items,
        depth + 1,
      );
    });
  }

  #text(schema: Json): string {
    if ("format" in schema && this.#random.chance(0.5)) return this.#random.pick(FORMATTED);
    const fits = TEXTS.filter((text) => {
      const { pattern, minLength = 0, maxLength = 99 } = schema;
      if (typeof pattern === "string" && !new RegExp(pattern, "u").test(text)) return false;
      return text.length >= (minLength as number) && text.length <= (maxLength as number);
    });
    return this.#random.pick(fits.length > 0 && this.#random.chance(0.8) ? fits : TEXTS);
  }

  #number(schema: Json, type: string): number {
    if ("format" in schema && this.#random.chance(0.3))
      return this.#random.pick([2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1, 1.5]);
    const bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].flatMap((keyword) =>
      typeof schema[keyword] === "number" ? [schema[keyword]] : [],
    );
    const base =
      bounds.length > 0 && this.#random.chance(0.7)
        ? this.#random.pick(bounds)
        : this.#random.pick([0, 1, 2, 3, 4, -1, 6]);
    const away = this.#random.pick([0, 0, 1, -1, ...(type === "number" ? [0.5, -0.5] : [])]);
    return base + away;
  }

  #anything(depth: number): unknown {
    const plain: unknown[] = [0, 1, 2.5, "a", "x1", "ab", true, null, [], {}, { a: 1 }, [1, "a"]];
    if (depth < 3 && this.#random.chance(0.3))
      return this.#object({ properties: { a: true, b: true } }, depth + 3);
    return this.#random.pick(plain);
  }
}

function both(one: unknown, other: unknown): unknown {
  if (one === undefined || one === true) return other;
  return other === undefined || other === true ? one : { allOf: [one, other] };
}

function bothMaps(one: unknown, other: unknown): Json {
  const map = { ...(one as Json | undefined) };
  for (const [name, inner] of Object.entries((other ?? {}) as Json)) map[name] = both(map[name], inner);
  return map;
}

/** What two schemas say of items, place by place where one of them does. */
function bothItems({ items: one }: Json, { items: other }: Json): unknown {
  if (!Array.isArray(one) && !Array.isArray(other)) return both(one, other);
  const length = Math.max(...[one, other].map((items) => (Array.isArray(items) ? items.length : 0)));
  return Array.from({ length }, (_, index) => both(itemAt(one, index), itemAt(other, index)));
}

function itemAt(items: unknown, index: number): unknown {
  return Array.isArray(items) ? (items as unknown[])[index] : items;
}
