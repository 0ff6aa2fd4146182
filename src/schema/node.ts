import { isAssertion, isDefinitions, type JsonObject, type Subschema } from "./keywords.ts";
import type { PatternCompiler } from "./patterns/compile.ts";
import { isCheckedFormat } from "./validate/formats.ts";

export interface SchemaDocument {
  readonly schemata: JsonObject;
  readonly root: SchemaNode;
  readonly nodes: readonly SchemaNode[];
  /** All patterns of the document; each is compiled once. */
  readonly patterns: PatternCompiler;
}

let nextId = 0;

/** The fields of a node that hold the schemas of the keyword of that name. */
type Applied = "allOf" | "properties" | "not";

// Most schemas have none of most keywords, and one map for each would take more than all else.
const NO_NODES: readonly SchemaNode[] = [];
const NO_NAMED: ReadonlyMap<string, SchemaNode> = new Map();

/** One schema of a document, with the schemas directly inside it at hand by keyword. */
export class SchemaNode {
  /** No other node of any document has it. */
  readonly id = nextId++;
  readonly document: SchemaDocument;
  readonly pointer: string;
  readonly schema: JsonObject | boolean;
  /** What its `$ref` refers to; everything else beside a `$ref` is ignored in draft-07. */
  target: SchemaNode | undefined = undefined;
  readonly subschemas: (Subschema & { readonly node: SchemaNode })[] = [];
  allOf = NO_NODES;
  anyOf = NO_NODES;
  oneOf = NO_NODES;
  not: SchemaNode | undefined = undefined;
  if: SchemaNode | undefined = undefined;
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: SchemaNode | undefined = undefined;
  else: SchemaNode | undefined = undefined;
  properties = NO_NAMED;
  patternProperties = NO_NAMED;
  additionalProperties: SchemaNode | undefined = undefined;
  propertyNames: SchemaNode | undefined = undefined;
  /** What the presence of a name requires: a schema here, names in `dependentNames`. */
  dependentSchemas = NO_NAMED;
  items: SchemaNode | undefined = undefined;
  /** `items` as a list; then `items` is undefined. */
  tuple: SchemaNode[] | undefined = undefined;
  additionalItems: SchemaNode | undefined = undefined;
  contains: SchemaNode | undefined = undefined;
  #resolved: SchemaNode | undefined;
  #keywords: readonly string[] | undefined;
  #dependentNames: ReadonlyMap<string, readonly string[]> | undefined;

  constructor(document: SchemaDocument, pointer: string, schema: JsonObject | boolean) {
    this.document = document;
    this.pointer = pointer;
    this.schema = schema;
  }

  add(subschema: Subschema, node: SchemaNode): void {
    this.subschemas.push({ ...subschema, node });
    const { keyword, steps } = subschema;
    const step = steps[1];
    if (isDefinitions(keyword)) return;
    if (keyword === "items" && step !== undefined) (this.tuple ??= []).push(node);
    else {
      const field = (keyword === "dependencies" ? "dependentSchemas" : keyword) as Applied;
      const fields = this as Record<Applied, unknown>;
      if (fields[field] === NO_NODES) fields[field] = [];
      if (fields[field] === NO_NAMED) fields[field] = new Map();
      const held = fields[field];
      if (Array.isArray(held)) held.push(node);
      else if (held instanceof Map) held.set(String(step), node);
      else fields[field] = node;
    }
  }

  /** The schema that references from here lead to, itself where it is none. To be used only once the whole document has been read. */
  get resolved(): SchemaNode {
    return (this.#resolved ??= this.target === undefined ? this : this.target.resolved);
  }

  /** The keywords that can refuse a value here. It is also for then only. */
  get keywords(): readonly string[] {
    return (this.#keywords ??= this.#findKeywords());
  }

  #findKeywords(): readonly string[] {
    if (this.target !== undefined) return ["$ref"];
    return Object.entries(this.schema)
      .filter(([keyword, value]) => constrains(this, keyword, value))
      .map(([keyword]) => keyword);
  }

  /** The value of an assertion keyword; `undefined` where it checks nothing. */
  value(keyword: string): unknown {
    return this.keywords.includes(keyword) ? (this.schema as JsonObject)[keyword] : undefined;
  }

  get required(): readonly string[] {
    return (this.value("required") ?? []) as string[];
  }

  get dependentNames(): ReadonlyMap<string, readonly string[]> {
    return (this.#dependentNames ??= this.#findDependentNames());
  }

  #findDependentNames(): ReadonlyMap<string, readonly string[]> {
    if (typeof this.schema === "boolean" || this.target !== undefined) return new Map();
    const entries = Object.entries(this.schema["dependencies"] ?? {});
    return new Map(entries.filter((entry): entry is [string, string[]] => Array.isArray(entry[1])));
  }

  /** Whether it plainly allows everything: `true`, `{}`, or annotations only. */
  get allowsAll(): boolean {
    return this.schema !== false && this.keywords.length === 0;
  }

  get allowsNone(): boolean {
    return this.schema === false;
  }

  matchesPattern(pattern: string, text: string): boolean {
    return this.document.patterns.compile(pattern).test(text);
  }

  /** The schemas of the patterns that are found in the name. */
  patternNodes(name: string): readonly SchemaNode[] {
    if (this.patternProperties.size === 0) return NO_NODES;
    return [...this.patternProperties]
      .filter(([pattern]) => this.matchesPattern(pattern, name))
      .map(([, node]) => node);
  }

  /** The schemas that a member of that name must conform to. */
  memberNodes(name: string): SchemaNode[] {
    const schemas = [this.properties.get(name) ?? [], this.patternNodes(name)].flat();
    return schemas.length === 0 && this.additionalProperties !== undefined
      ? [this.additionalProperties]
      : schemas;
  }

  itemNode(index: number): SchemaNode | undefined {
    if (this.tuple === undefined) return this.items;
    return this.tuple[index] ?? this.additionalItems;
  }
}

function constrains(node: SchemaNode, keyword: string, value: unknown): boolean {
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
    case "patternProperties":
      // A property that may be anything checks nothing, but its name is promised.
      return node[keyword].size > 0;
    case "dependencies":
      return node.dependentNames.size + node.dependentSchemas.size > 0;
    case "additionalProperties":
    case "propertyNames":
      return !node[keyword]!.allowsAll;
    case "items":
      return node.tuple !== undefined || node.items?.allowsAll === false;
    case "additionalItems":
      return node.tuple !== undefined && !node.additionalItems!.allowsAll;
    case "if":
      return node.then !== undefined || node.else !== undefined;
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
