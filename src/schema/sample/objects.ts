import type { SchemaNode } from "../document.ts";
import { childrenOf } from "../node-children.ts";
import type { Demands } from "./demands.ts";
import { NO_VALUE } from "./making.ts";
import type { Making } from "./making.ts";
import { word } from "./words.ts";

/** Share of the optional properties that are there. */
const OPTIONAL_SHARE = 0.6;
/** Tries at a name no schema lists, beyond those that are needed. */
const NAME_TRIES = 16;

/** An object with all required properties, some of the optional ones, and no others unless a least number asks for them. */
export function objectFor(demands: Demands, making: Making, depth: number): unknown {
  return new ObjectMaker(demands, making, depth).make();
}

class ObjectMaker {
  readonly #demands: Demands;
  readonly #making: Making;
  readonly #depth: number;
  readonly #members = new Map<string, unknown>();
  readonly #least: number;
  readonly #most: number;

  constructor(demands: Demands, making: Making, depth: number) {
    this.#demands = demands;
    this.#making = making;
    this.#depth = depth;
    const values = (keyword: string): number[] =>
      demands.schemas.map((schema) => schema[keyword]).filter((value) => typeof value === "number");
    this.#least = Math.max(0, ...values("minProperties"));
    this.#most = Math.min(Infinity, ...values("maxProperties"));
  }

  make(): unknown {
    const { nodes, schemas } = this.#demands;
    const listed = new Set(nodes.flatMap((node) => Array.from(childrenOf(node).map("properties").keys())));
    const required = new Set(schemas.flatMap((schema) => (schema["required"] ?? []) as string[]));
    for (const name of required) {
      if (!this.#with(name)) return NO_VALUE;
    }
    for (const name of this.#making.random.shuffled([...listed])) {
      const room = this.#members.size < this.#most;
      const wanted = !this.#making.isTerse(this.#depth) && this.#making.random.chance(OPTIONAL_SHARE);
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
      const children = childrenOf(node);
      const own: SchemaNode[] = [];
      const property = children.map("properties").get(name);
      if (property !== undefined) own.push(property);
      for (const [pattern, child] of children.map("patternProperties")) {
        this.#making.effort.spend(1);
        if (this.#making.texts.matches(pattern, name)) own.push(child);
      }
      const additional = children.one("additionalProperties");
      if (own.length === 0 && additional !== undefined) own.push(additional);
      nodes.push(...own);
      const names = children.one("propertyNames");
      if (names !== undefined && !this.#making.conforms(names, name)) return undefined;
    }
    return nodes.some(({ schema }) => schema === false) ? undefined : nodes;
  }

  /** Adds names no schema lists, up to the least number; a map without listed names gets one or two of its own accord. */
  #invent(isMap: boolean): boolean {
    const { random, effort } = this.#making;
    const open = this.#demands.nodes.some((node) => {
      const children = childrenOf(node);
      const additional = children.one("additionalProperties");
      return (
        (additional !== undefined && additional.schema !== false) ||
        children.map("patternProperties").size > 0
      );
    });
    const wished = isMap && open && !this.#making.isTerse(this.#depth) ? random.whole(1, 2) : 0;
    const target = Math.min(this.#most, Math.max(this.#least, wished));
    for (let tries = 0; this.#members.size < target && tries < target + NAME_TRIES; tries++) {
      effort.spend(1);
      const name = this.#name(tries);
      if (name !== undefined) this.#with(name);
    }
    return this.#members.size >= this.#least;
  }

  #name(tries: number): string | undefined {
    const { random, texts, effort } = this.#making;
    for (const node of this.#demands.nodes) {
      const children = childrenOf(node);
      const rule = children.one("propertyNames");
      if (rule !== undefined) {
        const name = this.#making.value([rule], this.#depth + 1, "string");
        return typeof name === "string" ? name : undefined;
      }
      const patterns = [...children.map("patternProperties").keys()];
      const closed = children.one("additionalProperties")?.schema === false;
      if (patterns.length > 0 && (closed || random.chance(0.5))) {
        return texts.textFor([{ pattern: random.pick(patterns) }], random, effort);
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
