import { FORMATS } from "../formats.ts";
import type { JsonObject } from "../keywords.ts";
import type { ValueSet } from "../equality.ts";

export interface PatternShape {
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
