import { isObject, type JsonObject } from "../keywords.ts";
import { Conjunction } from "../compatibility/conjunction.ts";
import { budget, StepsExceeded } from "../limits.ts";
import type { SchemaDocument } from "../node.ts";
import { TextWitness } from "../patterns/search.ts";
import { readSchema } from "../read.ts";
import { compileDocument, type Validator } from "../validate/compile.ts";
import type { Failure } from "../validate/errors.ts";
import { TYPE } from "../validate/values.ts";
import { SeededRandom } from "./seeded-random.ts";
import { ValueMaker } from "./value-maker.ts";

/** What making a payload may cost; test/schema/sample/hostile.test.ts measures the time. */
const SAMPLE_LIMITS = {
  /** Steps of one try, and of all of them together. */
  trySteps: 200_000,
  steps: 1_000_000,
  /** Characters of a payload's JSON: a service's default limit. */
  characters: 1024 * 1024,
} as const;

/** The depth from which each try makes everything as short as possible; the last tries do so from the root. */
const MINIMAL_FROM = [6, 6, 6, 6, 4, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0, 0] as const;

/** A payload that conforms, or the failure of the last one made, if any. */
export type Sample =
  | { readonly payload: JsonObject }
  | { readonly payload: undefined; readonly failure: Failure | undefined };

/** Makes payloads that conform to a schema, each checked by the schema itself. */
export class Sampler {
  readonly #document: SchemaDocument;
  readonly #texts = new TextWitness();
  readonly #validator: Validator;
  /** Why the last payload did not conform. */
  #failure: Failure | undefined;

  /** @throws `invalid` with the place, for a schema that `checkSchema` would not accept */
  constructor(schemata: unknown) {
    this.#document = readSchema(schemata);
    this.#validator = compileDocument(this.#document);
  }

  /**
   * Makes the same sample for the same seed and stream. It takes milliseconds, and in the worst case some two seconds.
   * @param stream distinguishes the samples of one seed; both whole numbers from 0
   */
  sample(seed: number, stream: number): Sample {
    const random = new SeededRandom(seed, stream);
    let remaining: number = SAMPLE_LIMITS.steps;
    this.#failure = undefined;
    for (const minimalFrom of MINIMAL_FROM) {
      if (remaining <= 0) break;
      const maxSteps = Math.min(remaining, SAMPLE_LIMITS.trySteps);
      budget.left = maxSteps;
      const payload = this.#try(random, minimalFrom);
      remaining -= maxSteps - budget.left;
      if (payload !== undefined) return { payload };
    }
    return { payload: undefined, failure: this.#failure };
  }

  #try(random: SeededRandom, minimalFrom: number): JsonObject | undefined {
    try {
      const maker = new ValueMaker(this.#texts, { random, minimalFrom });
      const root = new Conjunction({ nodes: [this.#document.root], types: TYPE.object });
      for (const payload of maker.witnesses(root)) {
        if (!isObject(payload) || !this.#conforms(payload)) continue;
        return JSON.stringify(payload).length > SAMPLE_LIMITS.characters ? undefined : payload;
      }
    } catch (error) {
      // Out of steps, or of stack: references chained thousands deep take much of it.
      if (!(error instanceof StepsExceeded || error instanceof RangeError)) throw error;
    }
    return undefined;
  }

  #conforms(payload: unknown): boolean {
    const failure = this.#validator.validate(payload, Math.max(0, budget.left));
    if (budget.left >= 0) this.#failure = failure;
    return failure === undefined;
  }
}
