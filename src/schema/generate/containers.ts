import { refillBudget, type StepBudget } from "../limits.ts";
import type { SchemaNode } from "../node.ts";
import { canonicalText } from "../validate/values.ts";
import type { Constraints, JsonType } from "./constraints.ts";
import type { SeededRandom } from "./pattern-text.ts";
import { numbersIn, type Texts, word } from "./scalars.ts";

/** Stands where no value was found; `undefined` is no JSON, yet `null` is. */
export const NO_VALUE = Symbol("no value");

/** One go at a payload: what its parts are made with. */
export interface GeneratorContext {
  readonly random: SeededRandom;
  readonly steps: StepBudget;
  readonly texts: Texts;
  /** Whether a value at that depth is to be as short as it may. */
  isMinimal(depth: number): boolean;
  /** A value that all of the schemas allow, or `NO_VALUE`. */
  value(nodes: readonly SchemaNode[], depth: number, only?: JsonType): unknown;
  /** Whether a value conforms to one schema of the document. */
  conforms(node: SchemaNode, value: unknown): boolean;
}

/** Share of the optional properties that are there. */
const OPTIONAL_SHARE = 0.6;
/** Tries at a name no schema lists, beyond those that are needed. */
const NAME_TRIES = 16;

/** An object with all required properties, some of the optional ones, and no others unless a least number asks for them. */
export function objectFor(demands: Constraints, making: GeneratorContext, depth: number): unknown {
  return new ObjectMaker(demands, making, depth).make();
}

class ObjectMaker {
  readonly #demands: Constraints;
  readonly #making: GeneratorContext;
  readonly #depth: number;
  readonly #members = new Map<string, unknown>();
  readonly #least: number;
  readonly #most: number;

  constructor(demands: Constraints, making: GeneratorContext, depth: number) {
    this.#demands = demands;
    this.#making = making;
    this.#depth = depth;
    this.#least = Math.max(0, ...numbersIn(demands.schemas, "minProperties"));
    this.#most = Math.min(Infinity, ...numbersIn(demands.schemas, "maxProperties"));
  }

  make(): unknown {
    const { nodes, schemas } = this.#demands;
    const listed = new Set(nodes.flatMap((node) => Array.from(node.properties.keys())));
    const required = new Set(schemas.flatMap((schema) => (schema["required"] ?? []) as string[]));
    for (const name of required) {
      if (!this.#with(name)) return NO_VALUE;
    }
    for (const name of this.#making.random.shuffled([...listed])) {
      const room = this.#members.size < this.#most;
      const wanted = !this.#making.isMinimal(this.#depth) && this.#making.random.chance(OPTIONAL_SHARE);
      if (room && (wanted || this.#members.size < this.#least)) this.#with(name);
    }
    if (!this.#invent(listed.size === 0)) return NO_VALUE;
    if (this.#members.size < this.#least || this.#members.size > this.#most) return NO_VALUE;
    return this.#ordered(listed);
  }

  /** Adds a property and those it brings along; whether it could. */
  #with(name: string): boolean {
    if (this.#members.has(name)) return true;
    if (this.#demands.forbidden.has(name)) return false;
    const nodes = this.#nodesFor(name);
    if (nodes === undefined) return false;
    const value = this.#making.value(nodes, this.#depth + 1);
    if (value === NO_VALUE) return false;
    this.#members.set(name, value);
    const brought = this.#demands.schemas.flatMap((schema) => {
      const dependencies = schema["dependencies"] as Record<string, unknown> | undefined;
      const names = dependencies !== undefined && Object.hasOwn(dependencies, name) ? dependencies[name] : [];
      return Array.isArray(names) ? (names as string[]) : [];
    });
    if (brought.every((other) => this.#with(other))) return true;
    this.#members.delete(name);
    return false;
  }

  /** What a property of that name must conform to; `undefined` where there can be none. */
  #nodesFor(name: string): SchemaNode[] | undefined {
    const nodes: SchemaNode[] = [];
    for (const node of this.#demands.nodes) {
      const own: SchemaNode[] = [];
      const property = node.properties.get(name);
      if (property !== undefined) own.push(property);
      for (const [pattern, child] of node.patternProperties) {
        this.#making.steps.spend(1);
        if (this.#making.texts.matches(pattern, name)) own.push(child);
      }
      const additional = node.additionalProperties;
      if (own.length === 0 && additional !== undefined) own.push(additional);
      nodes.push(...own);
      const names = node.propertyNames;
      if (names !== undefined && !this.#making.conforms(names, name)) return undefined;
    }
    return nodes.some(({ schema }) => schema === false) ? undefined : nodes;
  }

  /** Adds names no schema lists, up to the least number; a map without listed names gets one or two of its own accord. */
  #invent(isMap: boolean): boolean {
    const { random, steps } = this.#making;
    const open = this.#demands.nodes.some((node) => {
      const additional = node.additionalProperties;
      return (additional !== undefined && additional.schema !== false) || node.patternProperties.size > 0;
    });
    const wished = isMap && open && !this.#making.isMinimal(this.#depth) ? random.whole(1, 2) : 0;
    const target = Math.min(this.#most, Math.max(this.#least, wished));
    for (let tries = 0; this.#members.size < target && tries < target + NAME_TRIES; tries++) {
      steps.spend(1);
      const name = this.#name(tries);
      if (name !== undefined) this.#with(name);
    }
    return this.#members.size >= this.#least;
  }

  #name(tries: number): string | undefined {
    const { random, texts, steps } = this.#making;
    for (const node of this.#demands.nodes) {
      const rule = node.propertyNames;
      if (rule !== undefined) {
        const name = this.#making.value([rule], this.#depth + 1, "string");
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
/** Tries at an item that is not there yet. */
const UNIQUE_TRIES = 12;

/** A list of few items; one with a list of places has all of those places where it may. */
export function listFor(demands: Constraints, making: GeneratorContext, depth: number): unknown {
  const contained = demands.nodes.flatMap((node) => node.contains ?? []);
  const least = Math.max(0, contained.length > 0 ? 1 : 0, ...numbersIn(demands.schemas, "minItems"));
  const most = Math.min(Infinity, ...numbersIn(demands.schemas, "maxItems"));
  if (least > most) return NO_VALUE;
  making.steps.spend(least);
  const length = Math.min(most, lengthOf(demands, making, depth, Math.max(least, contained.length)));
  const unique = demands.schemas.some((schema) => schema["uniqueItems"] === true);
  const items: unknown[] = [];
  const texts = new Set<string>();
  for (let index = 0; index < length; index++) {
    const nodes = nodesAt(demands.nodes, index);
    const wanted = contained[index];
    if (wanted !== undefined) nodes.push(wanted);
    const item = unique
      ? newItem(() => making.value(nodes, depth + 1), texts, making)
      : making.value(nodes, depth + 1);
    if (item === NO_VALUE) {
      // A place that nothing can take ends the list.
      if (index < least || index < contained.length) return NO_VALUE;
      break;
    }
    items.push(item);
  }
  return items;
}

function lengthOf({ nodes }: Constraints, making: GeneratorContext, depth: number, least: number): number {
  if (making.isMinimal(depth)) return least;
  const places = Math.max(0, ...nodes.map((node) => (node.tuple ?? []).length));
  if (places > 0) return Math.max(least, places);
  return making.random.whole(Math.max(least, 1), least + MORE_ITEMS);
}

/** What the item at an index must conform to. */
function nodesAt(nodes: readonly SchemaNode[], index: number): SchemaNode[] {
  return nodes.flatMap((node) => {
    const each = node.items;
    if (each !== undefined) return each;
    const places = node.tuple ?? [];
    // Without a list of places, additionalItems means nothing.
    if (places.length === 0) return [];
    return places[index] ?? node.additionalItems ?? [];
  });
}

function newItem(make: () => unknown, texts: Set<string>, making: GeneratorContext): unknown {
  for (let tries = 0; tries < UNIQUE_TRIES; tries++) {
    const item = make();
    if (item === NO_VALUE) return NO_VALUE;
    refillBudget();
    const text = canonicalText(item);
    making.steps.spend(1 + (text.length >> 4));
    if (texts.has(text)) continue;
    texts.add(text);
    return item;
  }
  return NO_VALUE;
}
