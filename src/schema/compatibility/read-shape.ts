import type { SchemaDocument, SchemaNode } from "../document.ts";
import { isCheckedFormat } from "../formats.ts";
import { isAnnotation, isAssertion, isDefinitions, isKnown, isObject, patternsIn } from "../keywords.ts";
import type { JsonObject } from "../keywords.ts";
import { PatternCompiler } from "../pattern.ts";
import type { Task } from "../task.ts";
import { Shape } from "./shape.ts";

/** Gives out ids, so that shapes of both documents can stand in one key. */
export class ShapeIds {
  #next = 0;
  take(): number {
    return this.#next++;
  }
}

/** Reads a document, a schema or a pattern a step. Both documents of a comparison share the ids. */
export function* readingShape(document: SchemaDocument, side: "old" | "new", ids: ShapeIds): Task<Shape> {
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
