import { isObject, type JsonObject } from "../keywords.ts";
import { refillBudget } from "../limits.ts";
import type { SchemaDocument, SchemaNode } from "../node.ts";
import { canonicalText } from "../validate/values.ts";

/** All that one value must be, collected from its schemas. */
export interface Constraints {
  /** Object schemas that all must hold, with references and `allOf` resolved and one branch of each union chosen. */
  readonly nodes: readonly SchemaNode[];
  readonly schemas: readonly JsonObject[];
  readonly types: ReadonlySet<JsonType>;
  readonly integer: boolean;
  /** Values of `enum` and `const` that all of them list; `undefined` when none lists any. */
  readonly values: readonly unknown[] | undefined;
  /** Names no object may have, as a choice made here excludes them. */
  readonly forbidden: ReadonlySet<string>;
  /** Whether another turn may choose otherwise. */
  readonly choices: boolean;
  /** Whether the generator ignores something, so that the value has to be checked. */
  readonly unsure: boolean;
}

/** Chooses one branch of a union. */
type Choose = (branches: readonly SchemaNode[]) => SchemaNode;

/**
 * @param only the type the value must have, whatever the schemas say
 * @returns `undefined` where the choices contradict each other
 */
export function constraintsOf(
  nodes: readonly SchemaNode[],
  choose: Choose,
  only?: JsonType,
): Constraints | undefined {
  const collector = new ConstraintCollector(choose, only);
  for (const node of nodes) collector.add(node);
  collector.resolveChoices();
  return collector.constraints();
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
    for (const branches of [node.anyOf, node.oneOf]) if (branches.length > 0) this.#open.push(branches);
    this.#unsure ||= node.oneOf.length > 1;
    if (node.if !== undefined) this.#addCondition(node.if, node.then, node.else);
    if (node.not !== undefined) this.#addNot(node.not);
    this.#unsure ||= "propertyNames" in schema || "contains" in schema;
  }

  /** Chooses a branch of each union, once all that is certain is known. */
  resolveChoices(): void {
    for (let branches = this.#open.pop(); branches !== undefined; branches = this.#open.pop()) {
      const possible = branches.filter((branch) => this.#mayHold(branch));
      if (branches.length > 1) this.#choices = true;
      if (possible.length === 0) this.#impossible = true;
      else this.add(this.#choose(possible));
      if (this.#open.length === 0) this.#resolveDependencies();
    }
    this.#resolveDependencies();
  }

  constraints(): Constraints | undefined {
    if (this.#impossible || this.#types.size === 0) return undefined;
    const nodes = [...this.#nodes].filter(({ schema, target }) => isObject(schema) && target === undefined);
    const schemas = nodes.map(({ schema }) => schema as JsonObject);
    const values = this.#values?.filter((value) => this.#types.has(typeOf(value)));
    if (values?.length === 0) return undefined;
    // What stands beside the list may exclude a listed value.
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

  /** A schema that a property depends on: the property is left out, or both hold. */
  #resolveDependencies(): void {
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
    const { schema } = branch.resolved;
    if (!isObject(schema)) return schema;
    const stated = schema["type"];
    if (stated === undefined) return true;
    return ([stated].flat() as string[]).some((type) =>
      this.#types.has((type === "integer" ? "number" : type) as JsonType),
    );
  }
}

const BESIDE_VALUES = new Set("enum const type title description $comment default examples".split(" "));

function hasRulesBesideValues(schema: JsonObject): boolean {
  return Object.keys(schema).some((keyword) => !BESIDE_VALUES.has(keyword));
}

function isRequired(schema: JsonObject | boolean, name: string): boolean {
  return isObject(schema) && Array.isArray(schema["required"]) && schema["required"].includes(name);
}

/** Levels of the flattest value of each schema, as far as known; infinite where no value ends. */
export type MinDepths = ReadonlyMap<SchemaNode, number>;

/** Finds the way out of a recursive schema: the branch that ends soonest. */
export function minDepthsOf({ nodes }: SchemaDocument): MinDepths {
  const minDepths = new Map<SchemaNode, number>();
  const depthOf = (node: SchemaNode): number => minDepths.get(node) ?? Infinity;
  // A round can only lower them, and there are no more rounds than levels.
  for (let changed = true; changed;) {
    changed = false;
    for (const node of nodes) {
      const found = minDepthOf(node, depthOf);
      if (found >= depthOf(node)) continue;
      minDepths.set(node, found);
      changed = true;
    }
  }
  return minDepths;
}

type DepthOf = (node: SchemaNode) => number;

function minDepthOf(node: SchemaNode, depthOf: DepthOf): number {
  const { schema, target } = node;
  if (!isObject(schema)) return schema ? 0 : Infinity;
  if (target !== undefined) return depthOf(target);
  const types = [schema["type"] ?? "null"].flat() as string[];
  const isListed = "enum" in schema || "const" in schema;
  const own = isListed ? 0 : Math.min(...types.map((type) => ownMinDepth(node, schema, type, depthOf)));
  const unions = [node.anyOf, node.oneOf].filter((branches) => branches.length > 0);
  const inBranches = unions.map((branches) => Math.min(...branches.map(depthOf)));
  return Math.max(own, ...node.allOf.map(depthOf), ...inBranches);
}

function ownMinDepth(node: SchemaNode, schema: JsonObject, type: string, depthOf: DepthOf): number {
  const inside = (nodes: readonly SchemaNode[]): number =>
    Math.max(0, ...nodes.map((inner) => 1 + depthOf(inner)));
  if (type === "object") {
    const required = (schema["required"] ?? []) as string[];
    return inside(required.flatMap((name) => node.properties.get(name) ?? []));
  }
  if (type !== "array") return 0;
  const minItems = Number(schema["minItems"] ?? 0);
  if (node.items !== undefined) return minItems > 0 ? inside([node.items]) : 0;
  return inside((node.tuple ?? []).slice(0, minItems));
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

/** The types a value may have, or where no schema states a type, those that the keywords are about. */
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
