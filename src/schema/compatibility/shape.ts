import {
  isAnnotation,
  isAssertion,
  isDefinitions,
  isKnown,
  isObject,
  type JsonObject,
  patternsIn,
} from "../keywords.ts";
import type { Steps } from "../../runtime/yielding.ts";
import { PatternCompiler } from "../patterns/compile.ts";
import type { SchemaDocument, SchemaNode } from "../read.ts";
import { FORMATS, isCheckedFormat } from "../validate/formats.ts";
import type { ValueSet } from "../validate/values.ts";

interface PatternShape {
  readonly pattern: string;
  readonly shape: Shape;
  readonly test: (name: string) => boolean;
}

/**
 * A schema as the comparison reads it: each keyword with its schemas at hand, and only what checks something. Annotations,
 * unknown keywords and formats, and what stands beside a `$ref` are not in it.
 */
export class Shape {
  readonly id: number;
  /** JSON pointer in its document. */
  readonly pointer: string;
  readonly side: "old" | "new";
  readonly schema: JsonObject | boolean;
  /** The keywords that check something here. */
  readonly keywords: string[] = [];
  reference: Shape | undefined = undefined;
  readonly allOf: Shape[] = [];
  readonly anyOf: Shape[] = [];
  readonly oneOf: Shape[] = [];
  not: Shape | undefined = undefined;
  if: Shape | undefined = undefined;
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: Shape | undefined = undefined;
  else: Shape | undefined = undefined;
  readonly properties = new Map<string, Shape>();
  readonly patterns: PatternShape[] = [];
  additionalProperties: Shape | undefined = undefined;
  propertyNames: Shape | undefined = undefined;
  /** What the presence of a name asks for: other names, or a schema. */
  readonly dependentNames = new Map<string, readonly string[]>();
  readonly dependentSchemas = new Map<string, Shape>();
  items: Shape | undefined = undefined;
  /** `items` as a list; then `items` is undefined. */
  tuple: Shape[] | undefined = undefined;
  additionalItems: Shape | undefined = undefined;
  contains: Shape | undefined = undefined;
  pattern: { test(text: string): boolean } | undefined = undefined;

  /** What others have found out about it, kept here as it is asked for again and again. */
  readonly clashes = new Map<Shape, boolean>();
  parts: readonly Shape[] | undefined = undefined;
  types: number | undefined = undefined;
  allowed: ValueSet | undefined = undefined;

  constructor(id: number, side: "old" | "new", pointer: string, schema: JsonObject | boolean) {
    this.id = id;
    this.side = side;
    this.pointer = pointer;
    this.schema = schema;
  }

  /** The value of an assertion keyword; `undefined` where it checks nothing. */
  value(keyword: string): unknown {
    return typeof this.schema === "object" && this.keywords.includes(keyword)
      ? this.schema[keyword]
      : undefined;
  }

  get required(): readonly string[] {
    return (this.value("required") ?? []) as string[];
  }

  /** Whether it allows everything in plain sight: `true`, `{}`, or annotations only. */
  get isOpen(): boolean {
    return this.schema === true || (typeof this.schema === "object" && this.keywords.length === 0);
  }

  get isFalse(): boolean {
    return this.schema === false;
  }
}

/** Whether a format is one of numbers (`int32`), not of strings. */
export function isNumberFormat(format: unknown): boolean {
  const definition = FORMATS[String(format)];
  return typeof definition === "object" && !(definition instanceof RegExp) && definition.type === "number";
}

/** The schemas a member of that name is held to. */
export function memberShapes(shape: Shape, name: string): Shape[] {
  const found: Shape[] = [];
  const property = shape.properties.get(name);
  if (property !== undefined) found.push(property);
  for (const { test, shape: child } of shape.patterns) if (test(name)) found.push(child);
  if (found.length === 0 && shape.additionalProperties !== undefined) found.push(shape.additionalProperties);
  return found;
}

/** The schema an item at that place is held to. */
export function itemShape(shape: Shape, index: number): Shape | undefined {
  if (shape.tuple === undefined) return shape.items;
  return shape.tuple[index] ?? shape.additionalItems;
}

/** Gives out ids, so that shapes of both documents can stand in one key. */
export class ShapeIds {
  #next = 0;
  take(): number {
    return this.#next++;
  }
}

/** Reads a document, a schema or a pattern a step. Both documents of a comparison share the ids. */
export function* readingShape(document: SchemaDocument, side: "old" | "new", ids: ShapeIds): Steps<Shape> {
  const shapes = new Map<SchemaNode, Shape>();
  for (const node of document.nodes) shapes.set(node, new Shape(ids.take(), side, node.pointer, node.schema));
  const patterns = new PatternCompiler();
  for (const [node, shape] of shapes) {
    yield;
    if (isObject(node.schema) && node.target === undefined) {
      for (const { pattern } of patternsIn(node.schema)) yield* patterns.compiling(pattern);
    }
    fill(shape, node, (other) => shapes.get(other)!, patterns);
  }
  return shapes.get(document.root)!;
}

function fill(
  shape: Shape,
  node: SchemaNode,
  shapeFor: (node: SchemaNode) => Shape,
  patterns: PatternCompiler,
): void {
  const { schema } = node;
  if (!isObject(schema)) return;
  if (node.target !== undefined) {
    shape.reference = shapeFor(node.target);
    shape.keywords.push("$ref");
    return;
  }
  for (const { keyword, steps, node: child } of node.subschemas) {
    place(shape, [keyword, ...steps.slice(1)], shapeFor(child), patterns);
  }
  for (const [name, needed] of Object.entries((schema["dependencies"] ?? {}) as JsonObject)) {
    if (Array.isArray(needed)) shape.dependentNames.set(name, needed as string[]);
  }
  if (typeof schema["pattern"] === "string") shape.pattern = patterns.compile(schema["pattern"]);
  shape.keywords.push(...Object.keys(schema).filter((keyword) => checks(shape, keyword, schema[keyword])));
}

function place(
  shape: Shape,
  [keyword, step]: readonly (string | number)[],
  child: Shape,
  patterns: PatternCompiler,
): void {
  switch (keyword) {
    case undefined:
      return;
    case "allOf":
    case "anyOf":
    case "oneOf":
      shape[keyword].push(child);
      return;
    case "properties":
      shape.properties.set(String(step), child);
      return;
    case "patternProperties": {
      const compiled = patterns.compile(String(step));
      shape.patterns.push({
        pattern: String(step),
        shape: child,
        test: (name) => compiled.test(name),
      });
      return;
    }
    case "dependencies":
      shape.dependentSchemas.set(String(step), child);
      return;
    case "items":
      if (step === undefined) shape.items = child;
      else (shape.tuple ??= []).push(child);
      return;
    case "not":
    case "if":
    case "then":
    case "else":
    case "additionalProperties":
    case "propertyNames":
    case "additionalItems":
    case "contains":
      shape[keyword] = child;
      return;
    default:
    // definitions check nothing by themselves
  }
}

/** Whether a keyword can refuse anything where it stands. */
function checks(shape: Shape, keyword: string, value: unknown): boolean {
  switch (keyword) {
    case "format":
      return isCheckedFormat(String(value));
    case "uniqueItems":
      return value === true;
    case "required":
      return (value as unknown[]).length > 0;
    case "minLength":
    case "minItems":
    case "minProperties":
      return value !== 0;
    case "properties":
      // An open one checks nothing, but stays: the name is promised.
      return shape.properties.size > 0;
    case "patternProperties":
      return shape.patterns.length > 0;
    case "dependencies":
      return shape.dependentNames.size + shape.dependentSchemas.size > 0;
    case "additionalProperties":
    case "propertyNames":
      return !isPlainlyOpen(shape[keyword]!);
    case "items":
      return shape.tuple !== undefined || (shape.items !== undefined && !isPlainlyOpen(shape.items));
    case "additionalItems":
      return shape.tuple !== undefined && !isPlainlyOpen(shape.additionalItems!);
    case "if":
      return shape.then !== undefined || shape.else !== undefined;
    case "allOf":
    case "anyOf":
    case "oneOf":
    case "not":
    case "contains":
      return true;
    default:
      return isAssertion(keyword);
  }
}

/** As `isOpen`, of a shape that may not have been filled yet. */
function isPlainlyOpen({ schema }: Shape): boolean {
  if (typeof schema === "boolean") return schema;
  return !Object.keys(schema).some(
    (keyword) => isKnown(keyword) && !isAnnotation(keyword) && !isDefinitions(keyword),
  );
}
