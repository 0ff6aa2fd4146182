import { budget } from "../budget.ts";
import { compileDocument } from "../compile.ts";
import type { Validator } from "../compile.ts";
import { readSchema } from "../document.ts";
import type { SchemaDocument, SchemaNode } from "../document.ts";
import type { Failure } from "../failure.ts";
import type { JsonObject } from "../keywords.ts";
import { VALIDATION_STEPS } from "../limits.ts";
import { Effort, EffortExceeded } from "./effort.ts";
import { heightsOf } from "./heights.ts";
import type { Heights } from "./heights.ts";
import { NO_VALUE } from "./making.ts";
import { SeededRandom } from "./random.ts";
import { Texts } from "./texts.ts";
import { ValueMaker } from "./values.ts";

/** What a payload may take; what that is in time, test/schema/sample/hostile.test.ts looks at. */
const SAMPLE_LIMITS = {
  /** Steps of one try, and of all of them together. */
  trySteps: 50_000,
  steps: 300_000,
  /** Characters of a payload's JSON, which is what a service takes unless told otherwise. */
  characters: 1024 * 1024,
} as const;

/** The depth from which on a try makes everything as short as it may; later tries come down to that from the root. */
const TERSE_FROM = [6, 6, 6, 6, 4, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0, 0] as const;
/** A step of a check is a small part of one here. */
const CHECK_STEPS = 32;
/** What compiling a schema on its own takes, for each schema in it. */
const COMPILE_STEPS = 20;
/** A schema that holds more than this is not compiled on its own: that takes too long, and the whole is checked anyway. */
const MOST_COMPILED = 100;

/** A payload that conforms, or why none was found: how the last one that was made fell short, if one was. */
export type Sample =
  | { readonly payload: JsonObject }
  | { readonly payload: undefined; readonly failure: Failure | undefined };

/** Makes payloads that conform to a schema. Each is checked by the schema itself before it is given out. */
export class Sampler {
  readonly #document: SchemaDocument;
  readonly #heights: Heights;
  readonly #texts = new Texts();
  readonly #validators = new Map<SchemaNode, Validator>();
  /** How the last whole payload fell short. */
  #failure: Failure | undefined;

  /** @throws `invalid` with the place, for a schema that `checkSchema` would not accept */
  constructor(schemata: unknown) {
    this.#document = readSchema(schemata);
    this.#heights = heightsOf(this.#document);
    this.#validators.set(this.#document.root, compileDocument(this.#document));
  }

  /**
   * The same seed and stream get the same answer. Takes milliseconds, and in the worst case some two seconds.
   * @param stream tells the samples of one seed apart; both whole numbers from 0
   */
  sample(seed: number, stream: number): Sample {
    const random = new SeededRandom(seed, stream);
    let left: number = SAMPLE_LIMITS.steps;
    this.#failure = undefined;
    for (const terseFrom of TERSE_FROM) {
      if (left === 0) break;
      const effort = new Effort(Math.min(left, SAMPLE_LIMITS.trySteps));
      const before = effort.left;
      const payload = this.#try(random, effort, terseFrom);
      if (payload !== undefined) return { payload };
      left -= before - effort.left;
    }
    return { payload: undefined, failure: this.#failure };
  }

  #try(random: SeededRandom, effort: Effort, terseFrom: number): JsonObject | undefined {
    const maker = new ValueMaker({
      random,
      effort,
      terseFrom,
      texts: this.#texts,
      heights: this.#heights,
      conforms: (node, value) => this.#conforms(node, value, effort),
    });
    try {
      const payload = maker.value([this.#document.root], 0, "object");
      if (payload === NO_VALUE || !this.#conforms(this.#document.root, payload, effort)) return undefined;
      return JSON.stringify(payload).length > SAMPLE_LIMITS.characters ? undefined : (payload as JsonObject);
    } catch (error) {
      if (error instanceof EffortExceeded) return undefined;
      throw error;
    }
  }

  /** Only ever wrong in saying that it does, and never about the whole payload. */
  #conforms(node: SchemaNode, value: unknown, effort: Effort): boolean {
    const validator = this.#validators.get(node) ?? this.#compiled(node, effort);
    if (validator === undefined) return true;
    const failure = validator.validate(value);
    effort.spend(1 + Math.ceil((VALIDATION_STEPS - budget.left) / CHECK_STEPS));
    if (node === this.#document.root) this.#failure = failure;
    return failure === undefined;
  }

  #compiled(node: SchemaNode, effort: Effort): Validator | undefined {
    const size = sizeOf(node);
    if (size > MOST_COMPILED) return undefined;
    effort.spend(COMPILE_STEPS * size);
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
