import { isAssertion, type JsonObject } from "../keywords.ts";
import type { SchemaDocument, SchemaNode } from "../node.ts";
import { CALL, STEPS } from "./ajv-keywords.ts";
import { isCheckedFormat } from "./formats.ts";

/** A schema as Ajv gets it: draft-07 keywords that check something, every reference a call into the list of parts. */
type SchemaPart = JsonObject | boolean;

/** A schema with more children is split: Ajv takes time with the square of their number. */
const WIDTH = 32;
/** The size of a part, beyond which inner schemas become their own parts: Ajv takes some 0.1 ms for each without a yield. */
const MAX_PART_SIZE = 64;
/** Smaller schemas never become their own part. */
const SMALL_SIZE = 4;
/** Steps of a call besides the schemas it runs: it costs about as much as ten of them. */
const CALL_STEPS = 10;
/** Steps to look up one required name, in an object with very many. */
const NAME_STEPS = 4;
/** Steps of a branch besides its schema: most fail, and an error is made for each. */
const TRIAL_STEPS = 1;
/** A schema that requires more names is not copied to its references, as its code would be copied too. */
const MAX_COPIED_NAMES = 8;
const SPLIT_MAPS = ["properties", "patternProperties", "dependencies"] as const;

/**
 * Splits a document into schemas for Ajv; the first part is the root. Unknown keywords and formats, `nullable` (which Ajv
 * would honour) and what is beside a `$ref` are left out, as they check nothing in draft-07.
 */
export function splitSchema(document: SchemaDocument): readonly SchemaPart[] {
  const parts = new SchemaParts();
  parts.numberOf(document.root);
  return parts.finish();
}

interface Built {
  readonly schema: SchemaPart;
  /** What running it takes of the budget; what is run once for each item or member counts by itself. */
  readonly steps: number;
  /** Schemas that are compiled when it is. */
  readonly size: number;
}

const ONE = { steps: 1, size: 1 };

class SchemaParts {
  readonly #parts: SchemaPart[] = [];
  readonly #numbers = new Map<SchemaNode, number>();
  readonly #waiting: SchemaNode[] = [];

  /** The part for a schema others refer to; it is built later, so that nothing recurses along references. */
  numberOf(node: SchemaNode): number {
    let number = this.#numbers.get(node);
    if (number === undefined) {
      number = this.#parts.push(true) - 1;
      this.#numbers.set(node, number);
      this.#waiting.push(node);
    }
    return number;
  }

  finish(): readonly SchemaPart[] {
    for (let node = this.#waiting.shift(); node !== undefined; node = this.#waiting.shift()) {
      this.#parts[this.#numbers.get(node)!] = partOf(this.#build(node));
    }
    return this.#parts;
  }

  /** Makes a schema a part of its own. */
  #add(built: Built): Built {
    const number = this.#parts.push(partOf(built)) - 1;
    return { schema: { [CALL]: number }, ...ONE };
  }

  #build(node: SchemaNode): Built {
    if (typeof node.schema === "boolean") return { schema: node.schema, ...ONE };
    if (node.target !== undefined) return this.#refer(node.target);
    const schema: JsonObject = {};
    let { steps, size } = ONE;
    for (const [keyword, value] of Object.entries(node.schema)) {
      if (!isAssertion(keyword) || (keyword === "format" && !isCheckedFormat(String(value)))) continue;
      schema[keyword] = value;
    }
    steps += NAME_STEPS * node.required.length;
    for (const [name, needed] of node.dependentNames) put(schema, "dependencies", name, needed);
    for (const {
      keyword,
      steps: [, step],
      looksAt,
      node: child,
    } of node.subschemas) {
      if (looksAt === "nothing") continue;
      let built = this.#build(child);
      if (built.size > SMALL_SIZE && size + built.size > MAX_PART_SIZE) built = this.#add(built);
      size += built.size;
      if (keyword !== "properties" && looksAt === "inside") built = counted(built);
      else steps += built.steps + (keyword === "anyOf" || keyword === "oneOf" ? TRIAL_STEPS : 0);
      put(schema, keyword, step, built.schema);
    }
    rewriteProto(schema);
    return { schema: this.#narrow(schema), steps, size };
  }

  /** A reference; to a small schema without any inside, such as `{ "type": "string" }`, the schema itself. */
  #refer(target: SchemaNode): Built {
    const { subschemas, dependentNames, required } = target;
    const isPlain = target.target === undefined && subschemas.length + dependentNames.size === 0;
    if (isPlain && required.length <= MAX_COPIED_NAMES) return this.#build(target);
    return { schema: { [CALL]: this.numberOf(target) }, ...ONE };
  }

  #narrow(schema: JsonObject): JsonObject {
    const groups: unknown[] = [];
    for (const keyword of SPLIT_MAPS) {
      const map = schema[keyword];
      if (map === undefined || Object.keys(map as object).length <= WIDTH) continue;
      for (const group of grouped(Object.entries(map as JsonObject))) {
        groups.push(this.#add({ schema: { [keyword]: Object.fromEntries(group) }, ...sizes(group) }).schema);
      }
      // The names stay, as additionalProperties needs them.
      if (keyword === "dependencies") delete schema[keyword];
      else schema[keyword] = Object.fromEntries(Object.keys(map as object).map((name) => [name, true]));
    }
    if (groups.length > 0)
      schema["allOf"] = [...groups, ...((schema["allOf"] as unknown[] | undefined) ?? [])];
    for (const keyword of ["allOf", "anyOf"]) {
      let list = schema[keyword] as unknown[] | undefined;
      while (list !== undefined && list.length > WIDTH) {
        list = grouped(list).map(
          (group) => this.#add({ schema: { [keyword]: group }, ...sizes(group) }).schema,
        );
      }
      if (list !== undefined) schema[keyword] = list;
    }
    for (const keyword of ["oneOf", "items"]) {
      const list = schema[keyword];
      if (Array.isArray(list) && list.length > WIDTH) {
        schema[keyword] = list.map((one: JsonObject | boolean) =>
          typeof one === "boolean" ? one : this.#add({ schema: one, ...ONE }).schema,
        );
      }
    }
    return schema;
  }
}

function partOf(built: Built): SchemaPart {
  return counted({ ...built, steps: built.steps + CALL_STEPS }).schema;
}

/** Has a schema count its steps when it is run. */
function counted(built: Built): Built {
  const { schema, steps } = built;
  if (typeof schema === "boolean" || Object.keys(schema).length === 0) return built;
  return { ...built, schema: { ...schema, [STEPS]: steps } };
}

function sizes({ length }: readonly unknown[]): Omit<Built, "schema"> {
  return { steps: length, size: length };
}

function grouped<T>(list: readonly T[]): T[][] {
  const groups: T[][] = [];
  for (let at = 0; at < list.length; at += WIDTH) groups.push(list.slice(at, at + WIDTH));
  return groups;
}

/** @param step the name or index of a child, of keywords that have several */
function put(schema: JsonObject, keyword: string, step: string | number | undefined, value: unknown): void {
  if (step === undefined) schema[keyword] = value;
  else if (typeof step === "number") ((schema[keyword] ??= []) as unknown[])[step] = value;
  else {
    const map = (schema[keyword] ??= {}) as JsonObject;
    Object.defineProperty(map, step, { value, enumerable: true, configurable: true, writable: true });
  }
}

const PROTO = "__proto__";

/** Ajv ignores a property named `__proto__`; other keywords can say the same. */
function rewriteProto(schema: JsonObject): void {
  const properties = schema["properties"] as JsonObject | undefined;
  if (properties === undefined || !Object.hasOwn(properties, PROTO)) return;
  const patterns = (schema["patternProperties"] ??= {}) as JsonObject;
  const other = patterns[`^${PROTO}$`];
  const own = properties[PROTO];
  patterns[`^${PROTO}$`] = other === undefined ? own : { allOf: [other, own] };
  delete properties[PROTO];
}
