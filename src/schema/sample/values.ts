import type { SchemaNode } from "../document.ts";
import { demandsOf } from "./demands.ts";
import type { Demands } from "./demands.ts";
import type { Effort } from "./effort.ts";
import type { Heights } from "./heights.ts";
import type { JsonType } from "./json-type.ts";
import { listFor } from "./lists.ts";
import { NO_VALUE } from "./making.ts";
import type { Making } from "./making.ts";
import { numberFor } from "./numbers.ts";
import { objectFor } from "./objects.ts";
import type { SeededRandom } from "./random.ts";
import type { Texts } from "./texts.ts";

/** Goes at a value whose choices may be made another way. */
const TURNS = 12;
/** What a turn takes, and what a number does besides. */
const TURN_STEPS = 4;
const NUMBER_STEPS = 8;
/** Levels a payload may have at most. */
const DEEPEST = 64;
/** How often a value that the schema names as an example, or as the default, is taken. */
const EXAMPLE_SHARE = 0.75;
const DEFAULT_SHARE = 0.25;
const NULL_SHARE = 0.2;

interface Parts {
  readonly random: SeededRandom;
  readonly effort: Effort;
  readonly texts: Texts;
  readonly heights: Heights;
  /** From this depth on values are as short as they may be. */
  readonly terseFrom: number;
  readonly conforms: Making["conforms"];
}

/** Makes values for the schemas of one document. */
export class ValueMaker implements Making {
  readonly random: SeededRandom;
  readonly effort: Effort;
  readonly texts: Texts;
  readonly conforms: Making["conforms"];
  readonly #heights: Heights;
  readonly #terseFrom: number;

  constructor({ random, effort, texts, heights, terseFrom, conforms }: Parts) {
    this.random = random;
    this.effort = effort;
    this.texts = texts;
    this.conforms = conforms;
    this.#heights = heights;
    this.#terseFrom = terseFrom;
  }

  isTerse(depth: number): boolean {
    return depth >= this.#terseFrom;
  }

  value(nodes: readonly SchemaNode[], depth: number, only?: JsonType): unknown {
    if (depth >= DEEPEST) return NO_VALUE;
    const taken = new Map<SchemaNode, number>();
    for (let turn = 0; turn < TURNS; turn++) {
      this.effort.spend(TURN_STEPS);
      const demands = demandsOf(nodes, (branches) => this.#choose(branches, depth, taken), only);
      if (demands === undefined) continue;
      this.effort.spend(demands.nodes.length);
      const named = this.#named(demands);
      const value = named === NO_VALUE ? this.#made(demands, depth) : named;
      const unsure = demands.unsure || named !== NO_VALUE;
      if (value !== NO_VALUE && (!unsure || nodes.every((node) => this.conforms(node, value)))) return value;
      // Making the very same again takes no other turn than chance, which has had several further in.
      if (!demands.choices && !demands.unsure && named === NO_VALUE && turn > 0) return NO_VALUE;
    }
    return NO_VALUE;
  }

  /** @param taken how often each was chosen for this value, in vain */
  #choose(branches: readonly SchemaNode[], depth: number, taken: Map<SchemaNode, number>): SchemaNode {
    const height = (node: SchemaNode): number => this.#heights.get(node) ?? Infinity;
    const times = (node: SchemaNode): number => taken.get(node) ?? 0;
    const finite = branches.filter((node) => height(node) < Infinity);
    const possible = finite.length > 0 ? finite : branches;
    const fewest = Math.min(...possible.map(times));
    const fresh = possible.filter((node) => times(node) === fewest);
    const flattest = Math.min(...fresh.map(height));
    const node = this.random.pick(
      this.isTerse(depth) ? fresh.filter((other) => height(other) === flattest) : fresh,
    );
    taken.set(node, times(node) + 1);
    return node;
  }

  /** One of the values the schemas themselves name as examples or defaults. */
  #named({ schemas }: Demands): unknown {
    const examples = schemas.flatMap((schema) =>
      Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]) : [],
    );
    if (examples.length > 0 && this.random.chance(EXAMPLE_SHARE)) return this.random.pick(examples);
    const defaults = schemas.filter((schema) => "default" in schema).map((schema) => schema["default"]);
    if (defaults.length > 0 && this.random.chance(DEFAULT_SHARE)) return this.random.pick(defaults);
    return NO_VALUE;
  }

  #made(demands: Demands, depth: number): unknown {
    if (demands.values !== undefined) return this.random.pick(demands.values);
    switch (this.#type(demands, depth)) {
      case "null":
        return null;
      case "boolean":
        return this.random.chance(0.5);
      case "number":
        this.effort.spend(NUMBER_STEPS);
        return numberFor(demands.schemas, demands.integer, this.random) ?? NO_VALUE;
      case "string":
        return this.texts.textFor(demands.schemas, this.random, this.effort) ?? NO_VALUE;
      case "array":
        return listFor(demands, this, depth);
      case "object":
        return objectFor(demands, this, depth);
      default:
        return NO_VALUE;
    }
  }

  #type({ types }: Demands, depth: number): JsonType {
    const all = [...types];
    if (all.length === 1) return all[0]!;
    if (types.has("null") && (this.isTerse(depth) || this.random.chance(NULL_SHARE))) return "null";
    const others = all.filter((type) => type !== "null");
    const flat = others.filter((type) => type !== "array" && type !== "object");
    return this.random.pick(this.isTerse(depth) && flat.length > 0 ? flat : others);
  }
}
