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

/** What making a payload may cost; test/schema/sample/hostile.test.ts measures the time. */
const SAMPLE_LIMITS = {
  /** Steps of one try, and of all of them together. */
  trySteps: 50_000,
  steps: 300_000,
  /** Characters of a payload's JSON: a service's default limit. */
  characters: 1024 * 1024,
} as const;

/** The depth from which each try makes everything as short as possible; the last tries do so from the root. */
const MINIMAL_FROM = [6, 6, 6, 6, 4, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0, 0] as const;
/** Steps of a check that count as one here. */
const CHECK_STEPS = 32;
/** Steps to compile a schema on its own, for each schema in it. */
const COMPILE_STEPS = 20;
/** A schema that holds more is not compiled on its own: that takes too long, and the whole is checked anyway. */
const MAX_COMPILED = 100;

/** A payload that conforms, or the failure of the last one made, if any. */
type Sample =
  | { readonly payload: JsonObject }
  | { readonly payload: undefined; readonly failure: Failure | undefined };

/** Makes payloads that conform to a schema, each checked by the schema itself. */
export class Sampler {
  readonly #document: SchemaDocument;
  readonly #minDepths: MinDepths;
  readonly #texts: Texts;
  readonly #validators = new Map<SchemaNode, Validator>();
  /** Why the last whole payload did not conform. */
  #failure: Failure | undefined;

  /** @throws `invalid` with the place, for a schema that `checkSchema` would not accept */
  constructor(schemata: unknown) {
    this.#document = readSchema(schemata);
    this.#texts = new Texts(this.#document.patterns);
    this.#minDepths = minDepthsOf(this.#document);
    this.#validators.set(this.#document.root, compileDocument(this.#document));
  }

  /**
   * The same seed and stream get the same answer. Takes milliseconds, and in the worst case some two seconds.
   * @param stream distinguishes the samples of one seed; both whole numbers from 0
   */
  sample(seed: number, stream: number): Sample {
    const random = new SeededRandom(seed, stream);
    let remaining: number = SAMPLE_LIMITS.steps;
    this.#failure = undefined;
    for (const minimalFrom of MINIMAL_FROM) {
      if (remaining === 0) break;
      const maxSteps = Math.min(remaining, SAMPLE_LIMITS.trySteps);
      const steps = new StepBudget(maxSteps);
      const payload = this.#try(random, steps, minimalFrom);
      if (payload !== undefined) return { payload };
      remaining -= maxSteps - Math.max(0, steps.left);
    }
    return { payload: undefined, failure: this.#failure };
  }

  #try(random: SeededRandom, steps: StepBudget, minimalFrom: number): JsonObject | undefined {
    const maker = new ValueMaker({
      random,
      steps,
      minimalFrom,
      texts: this.#texts,
      minDepths: this.#minDepths,
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

  /** May wrongly say that a value conforms, but never of the whole payload. */
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
    if (size > MAX_COMPILED) return undefined;
    steps.spend(COMPILE_STEPS * size);
    const validator = compileDocument({ ...this.#document, root: node });
    this.#validators.set(node, validator);
    return validator;
  }
}

/** How many schemas one holds or refers to, counted up to the limit. */
function sizeOf(root: SchemaNode): number {
  const found = new Set([root]);
  for (const node of found) {
    if (found.size > MAX_COMPILED) break;
    if (node.target !== undefined) found.add(node.target);
    for (const { node: child } of node.subschemas) found.add(child);
  }
  return found.size;
}

/** Turns at a value whose choices may be made otherwise. */
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

interface GeneratorParts {
  readonly random: SeededRandom;
  readonly steps: StepBudget;
  readonly texts: Texts;
  readonly minDepths: MinDepths;
  /** From this depth on values are as short as they may be. */
  readonly minimalFrom: number;
  readonly conforms: GeneratorContext["conforms"];
}

/** Makes values for the schemas of one document. */
class ValueMaker implements GeneratorContext {
  readonly random: SeededRandom;
  readonly steps: StepBudget;
  readonly texts: Texts;
  readonly conforms: GeneratorContext["conforms"];
  readonly #minDepths: MinDepths;
  readonly #minimalFrom: number;

  constructor({ random, steps, texts, minDepths, minimalFrom, conforms }: GeneratorParts) {
    this.random = random;
    this.steps = steps;
    this.texts = texts;
    this.conforms = conforms;
    this.#minDepths = minDepths;
    this.#minimalFrom = minimalFrom;
  }

  isMinimal(depth: number): boolean {
    return depth >= this.#minimalFrom;
  }

  value(nodes: readonly SchemaNode[], depth: number, only?: JsonType): unknown {
    if (depth >= DEEPEST) return NO_VALUE;
    const taken = new Map<SchemaNode, number>();
    for (let turn = 0; turn < TURNS; turn++) {
      this.steps.spend(TURN_STEPS);
      const constraints = constraintsOf(nodes, (branches) => this.#choose(branches, depth, taken), only);
      if (constraints === undefined) continue;
      this.steps.spend(constraints.nodes.length);
      const named = this.#named(constraints);
      const value = named === NO_VALUE ? this.#made(constraints, depth) : named;
      const unsure = constraints.unsure || named !== NO_VALUE;
      if (value !== NO_VALUE && (!unsure || nodes.every((node) => this.conforms(node, value)))) return value;
      // Another turn would differ only by chance, and inner values have had several turns.
      if (!constraints.choices && !constraints.unsure && named === NO_VALUE && turn > 0) return NO_VALUE;
    }
    return NO_VALUE;
  }

  /** @param taken how often each was chosen for this value without success */
  #choose(branches: readonly SchemaNode[], depth: number, taken: Map<SchemaNode, number>): SchemaNode {
    const depthOf = (node: SchemaNode): number => this.#minDepths.get(node) ?? Infinity;
    const times = (node: SchemaNode): number => taken.get(node) ?? 0;
    const finite = branches.filter((node) => depthOf(node) < Infinity);
    const possible = finite.length > 0 ? finite : branches;
    const fewest = Math.min(...possible.map(times));
    const fresh = possible.filter((node) => times(node) === fewest);
    const flattest = Math.min(...fresh.map(depthOf));
    const node = this.random.pick(
      this.isMinimal(depth) ? fresh.filter((other) => depthOf(other) === flattest) : fresh,
    );
    taken.set(node, times(node) + 1);
    return node;
  }

  /** One of the schemas' own examples or defaults. */
  #named({ schemas }: Constraints): unknown {
    const examples = schemas.flatMap((schema) =>
      Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]) : [],
    );
    if (examples.length > 0 && this.random.chance(EXAMPLE_SHARE)) return this.random.pick(examples);
    const defaults = schemas.filter((schema) => "default" in schema).map((schema) => schema["default"]);
    if (defaults.length > 0 && this.random.chance(DEFAULT_SHARE)) return this.random.pick(defaults);
    return NO_VALUE;
  }

  #made(constraints: Constraints, depth: number): unknown {
    if (constraints.values !== undefined) return this.random.pick(constraints.values);
    switch (this.#type(constraints, depth)) {
      case "null":
        return null;
      case "boolean":
        return this.random.chance(0.5);
      case "number":
        this.steps.spend(NUMBER_STEPS);
        return numberFor(constraints.schemas, constraints.integer, this.random) ?? NO_VALUE;
      case "string":
        return this.texts.textFor(constraints.schemas, this.random, this.steps) ?? NO_VALUE;
      case "array":
        return listFor(constraints, this, depth);
      case "object":
        return objectFor(constraints, this, depth);
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
