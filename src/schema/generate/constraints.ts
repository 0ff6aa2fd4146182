import { isObject, type JsonObject } from "../keywords.ts";
import { refillBudget } from "../limits.ts";
import type { SchemaDocument, SchemaNode } from "../node.ts";
import { canonicalText } from "../validate/values.ts";

/** All that one value must be, gathered from the schemas that it must conform to. */
export interface Constraints {
  /** Object schemas that all must hold: references followed, `allOf` taken apart, one branch of each choice taken. */
  readonly nodes: readonly SchemaNode[];
  readonly schemas: readonly JsonObject[];
  readonly types: ReadonlySet<JsonType>;
  readonly integer: boolean;
  /** Values of `enum` and `const` that all of them list; `undefined` when none lists any. */
  readonly values: readonly unknown[] | undefined;
  /** Names no object may have, as a choice made here goes without them. */
  readonly forbidden: ReadonlySet<string>;
  /** Whether another go may choose something else. */
  readonly choices: boolean;
  /** Whether something is demanded that making a value does not see to, so that the value has to be checked. */
  readonly unsure: boolean;
}

/** Takes one branch of a choice. */
type Choose = (branches: readonly SchemaNode[]) => SchemaNode;

/**
 * @param only the type the value must have, whatever the schemas say
 * @returns `undefined` where the choices made contradict each other
 */
export function constraintsOf(
  nodes: readonly SchemaNode[],
  choose: Choose,
  only?: JsonType,
): Constraints | undefined {
  const gathering = new ConstraintCollector(choose, only);
  for (const node of nodes) gathering.add(node);
  gathering.resolveChoices();
  return gathering.constraints();
}

class ConstraintCollector {
  readonly #choose: Choose;
  readonly #nodes = new Set<SchemaNode>();
  readonly #forbidden = new Set<string>();
  readonly #open: (readonly SchemaNode[])[] = [];
  #types: Set<JsonType>;
  #typed: boolean;
  #integer = false;
  #values: readonly unknown[] | undefined;
  #choices = false;
  #unsure = false;
  #impossible = false;

  constructor(choose: Choose, only: JsonType | undefined) {
    this.#choose = choose;
    this.#types = new Set(only === undefined ? ALL_TYPES : [only]);
    this.#typed = only !== undefined;
  }

  add(node: SchemaNode): void {
    if (this.#nodes.has(node)) return;
    this.#nodes.add(node);
    const { schema, target } = node;
    if (!isObject(schema)) {
      this.#impossible ||= !schema;
      return;
    }
    if (target !== undefined) return this.add(target);
    this.#narrow(schema);
    for (const child of node.allOf) this.add(child);
    for (const keyword of ["anyOf", "oneOf"] as const) {
      const branches = node[keyword];
      if (branches.length > 0) this.#open.push(branches);
    }
    this.#unsure ||= node.oneOf.length > 1;
    const condition = node.if;
    if (condition !== undefined) this.#addCondition(condition, node.then, node.else);
    const never = node.not;
    if (never !== undefined) this.#addNot(never);
    this.#unsure ||= "propertyNames" in schema || "contains" in schema;
  }

  /** Takes a branch of each choice, once all that is certain is known. */
  resolveChoices(): void {
    for (let branches = this.#open.pop(); branches !== undefined; branches = this.#open.pop()) {
      const possible = branches.filter((branch) => this.#mayHold(branch));
      if (branches.length > 1) this.#choices = true;
      if (possible.length === 0) this.#impossible = true;
      else this.add(this.#choose(possible));
      if (this.#open.length === 0) this.#settleDependencies();
    }
    this.#settleDependencies();
  }

  constraints(): Constraints | undefined {
    if (this.#impossible || this.#types.size === 0) return undefined;
    const nodes = [...this.#nodes].filter(({ schema, target }) => isObject(schema) && target === undefined);
    const schemas = nodes.map(({ schema }) => schema as JsonObject);
    const values = this.#values?.filter((value) => this.#types.has(typeOf(value)));
    if (values?.length === 0) return undefined;
    // A listed value may be ruled out by what stands beside the list.
    const unsure = this.#unsure || (values !== undefined && schemas.some(hasRulesBesideValues));
    return {
      nodes,
      schemas,
      types: this.#typed || values !== undefined ? this.#types : likelyTypes(this.#types, schemas),
      integer: this.#integer,
      values,
      forbidden: this.#forbidden,
      choices: this.#choices,
      unsure,
    };
  }

  #narrow(schema: JsonObject): void {
    const stated = schema["type"];
    if (stated !== undefined) {
      const types = [stated].flat() as string[];
      this.#typed = true;
      this.#integer ||= types.includes("integer") && !types.includes("number");
      const names = new Set(types.map((type) => (type === "integer" ? "number" : type)));
      this.#types = new Set([...this.#types].filter((type) => names.has(type)));
    }
    if (Array.isArray(schema["enum"])) this.#list(schema["enum"]);
    if ("const" in schema) this.#list([schema["const"]]);
  }

  #list(values: readonly unknown[]): void {
    if (this.#values === undefined) {
      this.#values = values;
      return;
    }
    refillBudget();
    const texts = new Set(values.map(canonicalText));
    this.#values = this.#values.filter((value) => texts.has(canonicalText(value)));
  }

  #addCondition(condition: SchemaNode, then?: SchemaNode, otherwise?: SchemaNode): void {
    if (then === undefined && otherwise === undefined) return;
    this.#choices = true;
    this.#unsure = true;
    const ways = [then ?? condition, otherwise ?? condition];
    if (this.#choose(ways) === ways[0] && then !== undefined) {
      this.add(condition);
      this.add(then);
    } else if (otherwise !== undefined) this.add(otherwise);
  }

  #addNot({ schema }: SchemaNode): void {
    this.#unsure = true;
    this.#choices = true;
    if (!isObject(schema)) return;
    const names = schema["required"];
    if (Array.isArray(names) && names.length === 1 && Object.keys(schema).length === 1) {
      this.#forbidden.add(String(names[0]));
    }
    if (typeof schema["type"] === "string" && Object.keys(schema).length === 1) {
      this.#types.delete(schema["type"] as JsonType);
    }
  }

  /** A schema that another property brings along: that property is left out, or both are in. */
  #settleDependencies(): void {
    for (const node of this.#nodes) {
      for (const [name, child] of node.dependentSchemas) {
        if (this.#nodes.has(child) || this.#forbidden.has(name)) continue;
        const required = [...this.#nodes].some(({ schema }) => isRequired(schema, name));
        if (required || this.#choose([child, node]) === child) this.add(child);
        else this.#forbidden.add(name);
      }
    }
    if (this.#open.length > 0) this.resolveChoices();
  }

  #mayHold(branch: SchemaNode): boolean {
    let node = branch;
    while (node.target !== undefined) node = node.target;
    if (!isObject(node.schema)) return node.schema;
    const stated = node.schema["type"];
    if (stated === undefined) return true;
    return ([stated].flat() as string[]).some((type) =>
      this.#types.has((type === "integer" ? "number" : type) as JsonType),
    );
  }
}

const BESIDE_VALUES = new Set([
  "enum",
  "const",
  "type",
  "title",
  "description",
  "$comment",
  "default",
  "examples",
]);

function hasRulesBesideValues(schema: JsonObject): boolean {
  return Object.keys(schema).some((keyword) => !BESIDE_VALUES.has(keyword));
}

function isRequired(schema: JsonObject | boolean, name: string): boolean {
  return isObject(schema) && Array.isArray(schema["required"]) && schema["required"].includes(name);
}

/** How many levels the flattest value of a schema has, as far as that can be told; infinite where none ends. */
export type MinDepths = ReadonlyMap<SchemaNode, number>;

/** Tells a recursive schema's way out: which alternative leads to an end soonest. */
export function minDepthsOf({ nodes }: SchemaDocument): MinDepths {
  const heights = new Map<SchemaNode, number>();
  const height = (node: SchemaNode): number => heights.get(node) ?? Infinity;
  // Each round can only lower them, and none needs more rounds than there are levels.
  for (let changed = true; changed;) {
    changed = false;
    for (const node of nodes) {
      const found = minDepthOf(node, height);
      if (found >= height(node)) continue;
      heights.set(node, found);
      changed = true;
    }
  }
  return heights;
}

function minDepthOf(node: SchemaNode, height: (node: SchemaNode) => number): number {
  const { schema, target } = node;
  if (!isObject(schema)) return schema ? 0 : Infinity;
  if (target !== undefined) return height(target);
  let most = ownMinDepth(node, height);
  for (const child of node.allOf) most = Math.max(most, height(child));
  for (const keyword of ["anyOf", "oneOf"] as const) {
    const branches = node[keyword];
    if (branches.length > 0) most = Math.max(most, Math.min(...branches.map(height)));
  }
  return most;
}

function ownMinDepth(node: SchemaNode, height: (node: SchemaNode) => number): number {
  const schema = node.schema as Record<string, unknown>;
  const types = [schema["type"] ?? "null"].flat() as string[];
  const heights = types.map((type) => {
    if ("enum" in schema || "const" in schema) return 0;
    if (type === "object") return objectMinDepth(node, schema, height);
    return type === "array" ? listMinDepth(node, schema, height) : 0;
  });
  return Math.min(...heights);
}

function objectMinDepth(
  node: SchemaNode,
  schema: Record<string, unknown>,
  height: (node: SchemaNode) => number,
): number {
  const properties = node.properties;
  let most = 0;
  for (const name of (schema["required"] ?? []) as string[]) {
    const property = properties.get(name);
    if (property !== undefined) most = Math.max(most, 1 + height(property));
  }
  return most;
}

function listMinDepth(
  node: SchemaNode,
  schema: Record<string, unknown>,
  height: (node: SchemaNode) => number,
): number {
  const least = Number(schema["minItems"] ?? 0);
  const each = node.items;
  if (each !== undefined) return least > 0 ? 1 + height(each) : 0;
  return Math.max(0, ...(node.tuple ?? []).slice(0, least).map((item) => 1 + height(item)));
}

export type JsonType = "null" | "boolean" | "number" | "string" | "array" | "object";

const ALL_TYPES: readonly JsonType[] = ["null", "boolean", "number", "string", "array", "object"];

const KEYWORDS: Readonly<Partial<Record<JsonType, string>>> = {
  object:
    "properties required patternProperties additionalProperties propertyNames minProperties maxProperties dependencies",
  array: "items additionalItems contains minItems maxItems uniqueItems",
  string: "pattern format minLength maxLength",
  number: "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
};
const TYPE_OF_KEYWORD: ReadonlyMap<string, string> = new Map(
  Object.entries(KEYWORDS).flatMap(([type, keywords]) =>
    keywords.split(" ").map((keyword) => [keyword, type] as const),
  ),
);

/** The types a value may have, or rather those its schemas are about where none of them states a type. */
function likelyTypes(types: ReadonlySet<JsonType>, schemas: readonly JsonObject[]): ReadonlySet<JsonType> {
  const hinted = new Set(
    schemas.flatMap((schema) => Object.keys(schema).map((keyword) => TYPE_OF_KEYWORD.get(keyword))),
  );
  const likely = [...types].filter((type) => hinted.has(type));
  if (likely.length > 0) return new Set(likely);
  const plain = [...types].filter((type) => type !== "null" && type !== "array");
  return plain.length > 0 ? new Set(plain) : types;
}

function typeOf(value: unknown): JsonType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value as JsonType;
}
