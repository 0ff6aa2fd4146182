import { Ajv } from "ajv";
import { checkSize, refusalAt, refuseSchema, refuseUnsafe } from "./document-rules.ts";
import { isObject, type JsonObject, patternsIn, subschemasOf } from "./keywords.ts";
import { runSync, type Steps } from "../runtime/yielding.ts";
import { budget, SCHEMA_LIMITS, VALIDATION_STEPS } from "./limits.ts";
import { type SchemaDocument, SchemaNode } from "./node.ts";
import { PatternCompiler } from "./patterns/compile.ts";
import { PatternSyntaxError } from "./patterns/syntax.ts";
import { childOf, pathOf, pointerSteps, pointerTo } from "../json/field-path.ts";
import { findFaults } from "./validate/faults.ts";

/** The base address of a document without `$id`; relative ones are resolved against it. */
const DEFAULT_BASE = "evreg:///schema";

/**
 * Checks a document's size and that it is draft-07, and finds its schemas and what each `$ref` refers to.
 * @throws `invalid` with the place at fault
 */
export function readSchema(schemata: unknown): SchemaDocument {
  return runSync(readSchemaSteps(schemata));
}

/** Reads a schema in three steps, of which the check by the meta-schema takes the longest: 5 ms for a schema of 40 KB. */
export function* readSchemaSteps(
  schemata: unknown,
  maxBytes: number = SCHEMA_LIMITS.bytes,
): Steps<SchemaDocument> {
  checkSize(schemata, maxBytes);
  const reader = new SchemaReader(schemata as JsonObject);
  yield;
  checkMeta(schemata, "", schemata);
  yield;
  return reader.resolve();
}

/**
 * Compiles all patterns of a document, each in a step of its own.
 * @throws `invalid` with the place, for one that cannot be used
 */
export function* compilePatternsSteps({ nodes, patterns, schemata }: SchemaDocument): Steps<void> {
  for (const { schema, pointer } of nodes) {
    if (!isObject(schema)) continue;
    for (const { pattern, steps } of patternsIn(schema)) {
      try {
        yield* patterns.compileSteps(pattern);
      } catch (error) {
        if (!(error instanceof PatternSyntaxError)) throw error;
        const place = steps.reduce<string>(pointerTo, pointer);
        throw refuseSchema(schemata, place, `the pattern ${error.message}`, pattern);
      }
    }
  }
}

let draft07: SchemaNode | undefined;

/** Checks the schema at a place of a document by the meta-schema of draft-07. */
function checkMeta(document: unknown, pointer: string, schema: unknown): void {
  draft07 ??= new SchemaReader(metaSchema()).resolve().root;
  budget.left = VALIDATION_STEPS;
  for (const { path, message, value } of findFaults(draft07, schema, 1)) {
    throw refusalAt([...pathOf(pointer, document), ...path], message, value);
  }
}

/**
 * Ajv's copy of the meta-schema, without what the draft only advises against: an empty `enum`, or a value in it twice. What its
 * formats are about is refused by the reader, with a better reason.
 */
function metaSchema(): JsonObject {
  const known = new Ajv().schemas["http://json-schema.org/draft-07/schema"]?.schema;
  if (!isObject(known)) throw new Error("Ajv came without the meta-schema of draft-07.");
  const properties = {
    ...(known["properties"] as JsonObject),
    enum: { type: "array" },
    items: { anyOf: [{ $ref: "#" }, { type: "array", items: { $ref: "#" } }] },
  };
  const text = JSON.stringify({ ...known, properties }, withoutFormats);
  return JSON.parse(text) as JsonObject;
}

function withoutFormats(keyword: string, value: unknown): unknown {
  return keyword === "format" && typeof value === "string" ? undefined : value;
}

class SchemaReader {
  readonly #schemata: JsonObject;
  readonly #nodes = new Map<string, SchemaNode>();
  /** The base address inside each schema. */
  readonly #bases = new Map<SchemaNode, string>();
  readonly #document: SchemaDocument & { root: SchemaNode; nodes: readonly SchemaNode[] };
  /** Schemas by address: of a `$id`, or of a `$id` with a plain-name fragment. */
  readonly #addresses = new Map<string, SchemaNode>();

  /** Finds the schemas. */
  constructor(schemata: JsonObject) {
    this.#schemata = schemata;
    const patterns = new PatternCompiler();
    // The root and the nodes are known once all is read.
    this.#document = { schemata, patterns, nodes: [], root: undefined! };
    this.#document.root = this.#visit(schemata, "", DEFAULT_BASE);
    this.#addresses.set(DEFAULT_BASE, this.#document.root);
  }

  /** Finds what each `$ref` refers to. */
  resolve(): SchemaDocument {
    // Schemas that only a $ref leads to join the map while it is walked.
    for (const node of this.#nodes.values()) {
      if (!isObject(node.schema) || typeof node.schema["$ref"] !== "string") continue;
      node.target = this.#resolve(node, node.schema["$ref"]);
    }
    this.#document.nodes = [...this.#nodes.values()];
    refuseEndless(this.#document);
    return this.#document;
  }

  #visit(schema: unknown, pointer: string, base: string): SchemaNode {
    const known = this.#nodes.get(pointer);
    if (known !== undefined) return known;
    if (typeof schema !== "boolean" && !isObject(schema)) {
      throw this.#refuse(pointer, "must be a schema: an object, true or false", schema);
    }
    if (this.#nodes.size >= SCHEMA_LIMITS.subschemas) {
      throw this.#refuse("", `must hold at most ${SCHEMA_LIMITS.subschemas.toLocaleString("en")} schemas`);
    }
    if (isObject(schema)) refuseUnsafe(this.#schemata, schema, pointer);
    const node = new SchemaNode(this.#document, pointer, schema);
    const innerBase = isObject(schema) ? this.#baseOf(schema, pointer, base) : base;
    this.#nodes.set(pointer, node);
    this.#bases.set(node, innerBase);
    if (!isObject(schema)) return node;
    this.#register(node, schema, base);
    for (const subschema of subschemasOf(schema)) {
      const inner = subschema.steps.reduce<string>(pointerTo, pointer);
      node.add(subschema, this.#visit(subschema.schema, inner, innerBase));
      // The meta-schema of draft-07 does not look into this keyword of a later draft.
      if (subschema.keyword === "$defs") checkMeta(this.#schemata, inner, subschema.schema);
    }
    return node;
  }

  /** The base address inside a schema: its own `$id`, unless that only names it or is ignored beside a `$ref`. */
  #baseOf(schema: JsonObject, pointer: string, base: string): string {
    const id = schema["$id"];
    if (typeof id !== "string" || typeof schema["$ref"] === "string" || id.startsWith("#")) return base;
    return this.#address(id, base, `${pointer}/$id`).replace(/#.*/s, "");
  }

  #register(node: SchemaNode, schema: JsonObject, base: string): void {
    const id = schema["$id"];
    if (typeof id !== "string" || typeof schema["$ref"] === "string") return;
    const address = this.#address(id, base, `${node.pointer}/$id`).replace(/#$/, "");
    if (this.#addresses.has(address)) {
      throw this.#refuse(`${node.pointer}/$id`, "is used by another schema in this document", id);
    }
    this.#addresses.set(address, node);
  }

  #resolve(node: SchemaNode, ref: string): SchemaNode {
    const place = `${node.pointer}/$ref`;
    const address = this.#address(ref, this.#bases.get(node)!, place);
    const named = this.#addresses.get(address.replace(/#$/, ""));
    if (named !== undefined) return named;
    const [, location = "", escaped = ""] = /^([^#]*)#?(.*)$/s.exec(address) ?? [];
    const resource = this.#addresses.get(location);
    if (resource === undefined) {
      throw this.#refuse(
        place,
        "refers to something outside this schema, which is never fetched; copy it into definitions and refer to it there",
        ref,
      );
    }
    let fragment: string;
    try {
      fragment = decodeURIComponent(escaped);
    } catch {
      throw this.#refuse(place, "has a percent sign that does not begin an escape", escaped);
    }
    if (fragment.startsWith("/")) return this.#descend(resource, fragment, place, ref);
    throw this.#refuse(place, "refers to a name that no $id in this schema has", ref);
  }

  /** The schema a pointer leads to, even where draft-07 expects none. */
  #descend(from: SchemaNode, fragment: string, place: string, ref: string): SchemaNode {
    let { pointer } = from;
    let base = this.#bases.get(from)!;
    let value: unknown = from.schema;
    let known: SchemaNode | undefined = from;
    for (const step of pointerSteps(fragment)) {
      value = childOf(value, step);
      if (value === undefined) throw this.#refuse(place, "refers to a place that does not exist", ref);
      pointer = pointerTo(pointer, step);
      known = this.#nodes.get(pointer);
      if (known !== undefined) base = this.#bases.get(known)!;
    }
    if (known !== undefined) return known;
    if (typeof value !== "boolean" && !isObject(value)) {
      throw this.#refuse(place, "refers to something that is not a schema", ref);
    }
    const node = this.#visit(value, pointer, base);
    checkMeta(this.#schemata, pointer, value);
    return node;
  }

  #address(reference: string, base: string, place: string): string {
    try {
      return new URL(reference, base).href;
    } catch {
      throw this.#refuse(place, "is not an address that can be resolved", reference);
    }
  }

  #refuse(pointer: string, message: string, value?: unknown): Error {
    return refuseSchema(this.#schemata, pointer, message, value);
  }
}

const OPEN = -1;

/** Refuses references by which the check of one value would never end, or chain more schemas than there is stack for. */
function refuseEndless({ schemata, nodes }: SchemaDocument): void {
  const lengths = new Map<SchemaNode, number>();
  /** The longest chain of schemas that are checked for the same value as this one. */
  const lengthFrom = (node: SchemaNode, before: number): number => {
    const known = lengths.get(node);
    if (known === OPEN) {
      const message =
        "refers back to itself without going deeper into the payload, so the check would never end";
      throw refuseSchema(schemata, node.pointer, message);
    }
    if (before + (known ?? 0) > SCHEMA_LIMITS.chained) {
      const most = SCHEMA_LIMITS.chained.toLocaleString("en");
      throw refuseSchema(schemata, node.pointer, `chains more than ${most} references and alternatives`);
    }
    if (known !== undefined) return known;
    lengths.set(node, OPEN);
    let length = node.target === undefined ? 0 : lengthFrom(node.target, before + 1);
    for (const { looksAt, node: inner } of node.subschemas) {
      if (looksAt === "same") length = Math.max(length, lengthFrom(inner, before + 1));
    }
    lengths.set(node, length + 1);
    return length + 1;
  };
  for (const node of nodes) lengthFrom(node, 0);
}
