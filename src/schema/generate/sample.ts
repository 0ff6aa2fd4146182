import { EvregError } from "../../domain/error.ts";
import { parsePayload } from "../../domain/publish-body.ts";
import type { JsonObject } from "../keywords.ts";
import { Conjunction } from "../compatibility/conjunction.ts";
import { budget, StepsExceeded } from "../limits.ts";
import { TextWitness } from "../patterns/search.ts";
import { readSchema } from "../read.ts";
import { TYPE } from "../validate/values.ts";
import { NOT_FOUND, ValueMaker } from "./value-maker.ts";

/** What each of the two tries may cost; test/schema/sample/hostile.test.ts measures the time. */
const MAX_STEPS = 500_000;
/** A service's default limits. */
const LIMITS = { payloadBytes: 1024 * 1024 };

/**
 * A payload that conforms to a schema, the same for the same schema: a full one, or else a small one. It takes milliseconds, and in
 * the worst case some two seconds.
 * @throws `invalid` with the place, for a schema that `checkSchema` would not accept
 */
export function sampleOf(schemata: unknown): JsonObject | undefined {
  const { root } = readSchema(schemata);
  const texts = new TextWitness();
  for (const isFull of [true, false]) {
    budget.left = MAX_STEPS;
    try {
      const payloads = new Conjunction({ nodes: [root], types: TYPE.object });
      const payload = new ValueMaker(texts, isFull).witness(payloads);
      if (payload === NOT_FOUND) continue;
      parsePayload(Buffer.from(JSON.stringify(payload)), LIMITS);
      return payload as JsonObject;
    } catch (error) {
      // It is too large or too deep. Or the steps are used up, or the stack: references chained thousands deep take much of it.
      const isLimit =
        error instanceof EvregError || error instanceof StepsExceeded || error instanceof RangeError;
      if (!isLimit) throw error;
    }
  }
  return undefined;
}
