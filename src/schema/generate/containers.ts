import { refillBudget, type StepBudget } from "../limits.ts";
import type { SchemaNode } from "../node.ts";
import { canonicalText } from "../validate/values.ts";
import type { Constraints, JsonType } from "./constraints.ts";
import type { SeededRandom } from "./pattern-text.ts";
import { numbersIn, type Texts, word } from "./scalars.ts";

/** Stands for a value that was not found: `null` would be one. */
export const NO_VALUE = Symbol("no value");

/** What one try at a payload uses. */
export interface GeneratorContext {
  readonly random: SeededRandom;
  readonly steps: StepBudget;
  readonly texts: Texts;
  /** Whether a value at that depth is to be as short as possible. */
  isMinimal(depth: number): boolean;
  /** A value that all of the schemas allow, or `NO_VALUE`. */
  value(nodes: readonly SchemaNode[], depth: number, only?: JsonType): unknown;
  /** Whether a value conforms to one schema of the document. */
  conforms(node: SchemaNode, value: unknown): boolean;
}

/** Share of the optional properties that are there. */
const OPTIONAL_SHARE = 0.6;
/** Tries at a name that no schema lists, beyond those needed. */
const NAME_TRIES = 16;

/** An object with all required properties, some optional ones, and others only to reach `minProperties`. */
export function objectFor(constraints: Constraints, context: GeneratorContext, depth: number): unknown {
  return new ObjectMaker(constraints, context, depth).make();
}

class ObjectMaker {
  readonly #constraints: Constraints;
  readonly #context: GeneratorContext;
  readonly #depth: number;
  readonly #members = new Map<string, unknown>();
  readonly #min: number;
  readonly #max: number;

  constructor(constraints: Constraints, context: GeneratorContext, depth: number) {
    this.#constraints = constraints;
    this.#context = context;
    this.#depth = depth;
    this.#min = Math.max(0, ...numbersIn(constraints.schemas, "minProperties"));
    this.#max = Math.min(Infinity, ...numbersIn(constraints.schemas, "maxProperties"));
  }

  make(): unknown {
    const { nodes, schemas } = this.#constraints;
    const listed = new Set(nodes.flatMap((node) => Array.from(node.properties.keys())));
    const required = new Set(schemas.flatMap((schema) => (schema["required"] ?? []) as string[]));
    for (const name of required) {
      if (!this.#with(name)) return NO_VALUE;
    }
    for (const name of this.#context.random.shuffled([...listed])) {
      const isFull = this.#members.size >= this.#max;
      const wanted = !this.#context.isMinimal(this.#depth) && this.#context.random.chance(OPTIONAL_SHARE);
      if (!isFull && (wanted || this.#members.size < this.#min)) this.#with(name);
    }
    if (!this.#invent(listed.size === 0)) return NO_VALUE;
    if (this.#members.size < this.#min || this.#members.size > this.#max) return NO_VALUE;
    return this.#ordered(listed);
  }

  /** Adds a property and those it depends on. False where it cannot. */
  #with(name: string): boolean {
    if (this.#members.has(name)) return true;
    if (this.#constraints.forbidden.has(name)) return false;
    const nodes = this.#nodesFor(name);
    if (nodes === undefined) return false;
    const value = this.#context.value(nodes, this.#depth + 1);
    if (value === NO_VALUE) return false;
    this.#members.set(name, value);
    const needed = this.#constraints.schemas.flatMap((schema) => {
      const dependencies = schema["dependencies"] as Record<string, unknown> | undefined;
      const names = dependencies !== undefined && Object.hasOwn(dependencies, name) ? dependencies[name] : [];
      return Array.isArray(names) ? (names as string[]) : [];
    });
    if (needed.every((other) => this.#with(other))) return true;
    this.#members.delete(name);
    return false;
  }

  /** The schemas of a property of that name; `undefined` where there can be none. */
  #nodesFor(name: string): SchemaNode[] | undefined {
    const nodes: SchemaNode[] = [];
    for (const node of this.#constraints.nodes) {
      const own: SchemaNode[] = [];
      const property = node.properties.get(name);
      if (property !== undefined) own.push(property);
      for (const [pattern, child] of node.patternProperties) {
        this.#context.steps.spend(1);
        if (this.#context.texts.matches(pattern, name)) own.push(child);
      }
      const additional = node.additionalProperties;
      if (own.length === 0 && additional !== undefined) own.push(additional);
      nodes.push(...own);
      const names = node.propertyNames;
      if (names !== undefined && !this.#context.conforms(names, name)) return undefined;
    }
    return nodes.some(({ schema }) => schema === false) ? undefined : nodes;
  }

  /** Adds names that no schema lists, up to the minimum; a map without listed names gets one or two in any case. */
  #invent(isMap: boolean): boolean {
    const { random, steps } = this.#context;
    const open = this.#constraints.nodes.some((node) => {
      const additional = node.additionalProperties;
      return (additional !== undefined && additional.schema !== false) || node.patternProperties.size > 0;
    });
    const wished = isMap && open && !this.#context.isMinimal(this.#depth) ? random.whole(1, 2) : 0;
    const target = Math.min(this.#max, Math.max(this.#min, wished));
    for (let tries = 0; this.#members.size < target && tries < target + NAME_TRIES; tries++) {
      steps.spend(1);
      const name = this.#name(tries);
      if (name !== undefined) this.#with(name);
    }
    return this.#members.size >= this.#min;
  }

  #name(tries: number): string | undefined {
    const { random, texts, steps } = this.#context;
    for (const node of this.#constraints.nodes) {
      const rule = node.propertyNames;
      if (rule !== undefined) {
        const name = this.#context.value([rule], this.#depth + 1, "string");
        return typeof name === "string" ? name : undefined;
      }
      const patterns = [...node.patternProperties.keys()];
      const closed = node.additionalProperties?.schema === false;
      if (patterns.length > 0 && (closed || random.chance(0.5))) {
        return texts.textFor([{ pattern: random.pick(patterns) }], random, steps);
      }
    }
    return tries < NAME_TRIES ? word(random) : `${word(random)}_${tries}`;
  }

  /** In the order the schemas list them. */
  #ordered(listed: ReadonlySet<string>): unknown {
    const names = [...listed].filter((name) => this.#members.has(name));
    const others = [...this.#members.keys()].filter((name) => !listed.has(name));
    return Object.fromEntries([...names, ...others].map((name) => [name, this.#members.get(name)]));
  }
}

/** Items beyond the least number. */
const MORE_ITEMS = 2;
/** Tries at an item that differs from the others. */
const UNIQUE_TRIES = 12;

/** A list of few items; a tuple has all its items where it may. */
export function listFor(constraints: Constraints, context: GeneratorContext, depth: number): unknown {
  const contained = constraints.nodes.flatMap((node) => node.contains ?? []);
  const min = Math.max(0, contained.length > 0 ? 1 : 0, ...numbersIn(constraints.schemas, "minItems"));
  const max = Math.min(Infinity, ...numbersIn(constraints.schemas, "maxItems"));
  if (min > max) return NO_VALUE;
  context.steps.spend(min);
  const length = Math.min(max, lengthOf(constraints, context, depth, Math.max(min, contained.length)));
  const unique = constraints.schemas.some((schema) => schema["uniqueItems"] === true);
  const items: unknown[] = [];
  const texts = new Set<string>();
  for (let index = 0; index < length; index++) {
    const nodes = nodesAt(constraints.nodes, index);
    const wanted = contained[index];
    if (wanted !== undefined) nodes.push(wanted);
    const item = unique
      ? newItem(() => context.value(nodes, depth + 1), texts, context)
      : context.value(nodes, depth + 1);
    if (item === NO_VALUE) {
      // An index that allows no item ends the list.
      if (index < min || index < contained.length) return NO_VALUE;
      break;
    }
    items.push(item);
  }
  return items;
}

function lengthOf({ nodes }: Constraints, context: GeneratorContext, depth: number, min: number): number {
  if (context.isMinimal(depth)) return min;
  const places = Math.max(0, ...nodes.map((node) => (node.tuple ?? []).length));
  if (places > 0) return Math.max(min, places);
  return context.random.whole(Math.max(min, 1), min + MORE_ITEMS);
}

/** The schemas of the item at an index. */
function nodesAt(nodes: readonly SchemaNode[], index: number): SchemaNode[] {
  return nodes.flatMap((node) => node.itemNode(index) ?? []);
}

function newItem(make: () => unknown, texts: Set<string>, context: GeneratorContext): unknown {
  for (let tries = 0; tries < UNIQUE_TRIES; tries++) {
    const item = make();
    if (item === NO_VALUE) return NO_VALUE;
    refillBudget();
    const text = canonicalText(item);
    context.steps.spend(1 + (text.length >> 4));
    if (texts.has(text)) continue;
    texts.add(text);
    return item;
  }
  return NO_VALUE;
}
