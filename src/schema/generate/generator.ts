import type { JsonObject } from "../keywords.ts";
import { budget, StepBudget, StepsExceeded, VALIDATION_STEPS } from "../limits.ts";
import type { SchemaDocument, SchemaNode } from "../node.ts";
import { readSchema } from "../read.ts";
import { compileDocument, type Validator } from "../validate/compile.ts";
import type { Failure } from "../validate/errors.ts";
import {
  type Constraints,
  constraintsOf,
  type MinDepths,
  minDepthsOf,
  type JsonType,
} from "./constraints.ts";
import { listFor, type GeneratorContext, NO_VALUE, objectFor } from "./containers.ts";
import { SeededRandom } from "./pattern-text.ts";
import { numberFor, Texts } from "./scalars.ts";

/** What a payload may take; what that is in time, test/schema/sample/hostile.test.ts looks at. */
const SAMPLE_LIMITS = {
  /** Steps of one try, and of all of them together. */
  trySteps: 50_000,
  steps: 300_000,
  /** Characters of a payload's JSON, which is what a service takes unless told otherwise. */
  characters: 1024 * 1024,
} as const;

/** The depth from which on a try makes everything as short as it may; later tries come down to that from the root. */
const MINIMAL_FROM = [6, 6, 6, 6, 4, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0, 0] as const;
/** A step of a check is a small part of one here. */
const CHECK_STEPS = 32;
/** What compiling a schema on its own takes, for each schema in it. */
const COMPILE_STEPS = 20;
/** A schema that holds more than this is not compiled on its own: that takes too long, and the whole is checked anyway. */
const MOST_COMPILED = 100;

/** A payload that conforms, or why none was found: how the last one that was made fell short, if one was. */
type Sample =
  | { readonly payload: JsonObject }
  | { readonly payload: undefined; readonly failure: Failure | undefined };

/** Makes payloads that conform to a schema. Each is checked by the schema itself before it is given out. */
export class Sampler {
  readonly #document: SchemaDocument;
  readonly #heights: MinDepths;
  readonly #texts: Texts;
  readonly #validators = new Map<SchemaNode, Validator>();
  /** How the last whole payload fell short. */
  #failure: Failure | undefined;

  /** @throws `invalid` with the place, for a schema that `checkSchema` would not accept */
  constructor(schemata: unknown) {
    this.#document = readSchema(schemata);
    this.#texts = new Texts(this.#document.patterns);
    this.#heights = minDepthsOf(this.#document);
    this.#validators.set(this.#document.root, compileDocument(this.#document));
  }

  /**
   * The same seed and stream get the same answer. Takes milliseconds, and in the worst case some two seconds.
   * @param stream tells the samples of one seed apart; both whole numbers from 0
   */
  sample(seed: number, stream: number): Sample {
    const random = new SeededRandom(seed, stream);
    let remaining: number = SAMPLE_LIMITS.steps;
    this.#failure = undefined;
    for (const terseFrom of MINIMAL_FROM) {
      if (remaining === 0) break;
      const maxSteps = Math.min(remaining, SAMPLE_LIMITS.trySteps);
      const steps = new StepBudget(maxSteps);
      const payload = this.#try(random, steps, terseFrom);
      if (payload !== undefined) return { payload };
      remaining -= maxSteps - Math.max(0, steps.left);
    }
    return { payload: undefined, failure: this.#failure };
  }

  #try(random: SeededRandom, steps: StepBudget, terseFrom: number): JsonObject | undefined {
    const maker = new ValueMaker({
      random,
      steps,
      terseFrom,
      texts: this.#texts,
      heights: this.#heights,
      conforms: (node, value) => this.#conforms(node, value, steps),
    });
    try {
      const payload = maker.value([this.#document.root], 0, "object");
      if (payload === NO_VALUE || !this.#conforms(this.#document.root, payload, steps)) return undefined;
      return JSON.stringify(payload).length > SAMPLE_LIMITS.characters ? undefined : (payload as JsonObject);
    } catch (error) {
      if (error instanceof StepsExceeded) return undefined;
      throw error;
    }
  }

  /** Only ever wrong in saying that it does, and never about the whole payload. */
  #conforms(node: SchemaNode, value: unknown, steps: StepBudget): boolean {
    const validator = this.#validators.get(node) ?? this.#compiled(node, steps);
    if (validator === undefined) return true;
    const failure = validator.validate(value);
    steps.spend(1 + Math.ceil((VALIDATION_STEPS - budget.left) / CHECK_STEPS));
    if (node === this.#document.root) this.#failure = failure;
    return failure === undefined;
  }

  #compiled(node: SchemaNode, steps: StepBudget): Validator | undefined {
    const size = sizeOf(node);
    if (size > MOST_COMPILED) return undefined;
    steps.spend(COMPILE_STEPS * size);
    const validator = compileDocument({ ...this.#document, root: node });
    this.#validators.set(node, validator);
    return validator;
  }
}

/** How many schemas one holds or refers to; counted up to the most that matter. */
function sizeOf(root: SchemaNode): number {
  const found = new Set([root]);
  for (const node of found) {
    if (found.size > MOST_COMPILED) break;
    if (node.target !== undefined) found.add(node.target);
    for (const { node: child } of node.subschemas) found.add(child);
  }
  return found.size;
}

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
  readonly steps: StepBudget;
  readonly texts: Texts;
  readonly heights: MinDepths;
  /** From this depth on values are as short as they may be. */
  readonly terseFrom: number;
  readonly conforms: GeneratorContext["conforms"];
}

/** Makes values for the schemas of one document. */
class ValueMaker implements GeneratorContext {
  readonly random: SeededRandom;
  readonly steps: StepBudget;
  readonly texts: Texts;
  readonly conforms: GeneratorContext["conforms"];
  readonly #heights: MinDepths;
  readonly #terseFrom: number;

  constructor({ random, steps, texts, heights, terseFrom, conforms }: Parts) {
    this.random = random;
    this.steps = steps;
    this.texts = texts;
    this.conforms = conforms;
    this.#heights = heights;
    this.#terseFrom = terseFrom;
  }

  isMinimal(depth: number): boolean {
    return depth >= this.#terseFrom;
  }

  value(nodes: readonly SchemaNode[], depth: number, only?: JsonType): unknown {
    if (depth >= DEEPEST) return NO_VALUE;
    const taken = new Map<SchemaNode, number>();
    for (let turn = 0; turn < TURNS; turn++) {
      this.steps.spend(TURN_STEPS);
      const demands = constraintsOf(nodes, (branches) => this.#choose(branches, depth, taken), only);
      if (demands === undefined) continue;
      this.steps.spend(demands.nodes.length);
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
      this.isMinimal(depth) ? fresh.filter((other) => height(other) === flattest) : fresh,
    );
    taken.set(node, times(node) + 1);
    return node;
  }

  /** One of the values the schemas themselves name as examples or defaults. */
  #named({ schemas }: Constraints): unknown {
    const examples = schemas.flatMap((schema) =>
      Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]) : [],
    );
    if (examples.length > 0 && this.random.chance(EXAMPLE_SHARE)) return this.random.pick(examples);
    const defaults = schemas.filter((schema) => "default" in schema).map((schema) => schema["default"]);
    if (defaults.length > 0 && this.random.chance(DEFAULT_SHARE)) return this.random.pick(defaults);
    return NO_VALUE;
  }

  #made(demands: Constraints, depth: number): unknown {
    if (demands.values !== undefined) return this.random.pick(demands.values);
    switch (this.#type(demands, depth)) {
      case "null":
        return null;
      case "boolean":
        return this.random.chance(0.5);
      case "number":
        this.steps.spend(NUMBER_STEPS);
        return numberFor(demands.schemas, demands.integer, this.random) ?? NO_VALUE;
      case "string":
        return this.texts.textFor(demands.schemas, this.random, this.steps) ?? NO_VALUE;
      case "array":
        return listFor(demands, this, depth);
      case "object":
        return objectFor(demands, this, depth);
      default:
        return NO_VALUE;
    }
  }

  #type({ types }: Constraints, depth: number): JsonType {
    const all = [...types];
    if (all.length === 1) return all[0]!;
    if (types.has("null") && (this.isMinimal(depth) || this.random.chance(NULL_SHARE))) return "null";
    const others = all.filter((type) => type !== "null");
    const flat = others.filter((type) => type !== "array" && type !== "object");
    return this.random.pick(this.isMinimal(depth) && flat.length > 0 ? flat : others);
  }
}
