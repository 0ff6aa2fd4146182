import { randomInt } from "node:crypto";
import type { Action } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { RawJson } from "../json/raw-json.ts";
import { Sampler } from "../schema/generate/generator.ts";

/** A seed for when none is given. Small, so that a person can type it again. */
export function anySeed(): number {
  return randomInt(1_000_000);
}

/**
 * Payloads that conform to an action's schema, the same for the same seed.
 * @throws `invalid` where none was found
 */
export function samplePayloads(action: Action, seed: number, count: number): RawJson[] {
  const sampler = new Sampler(action.schemata);
  return Array.from({ length: count }, (_, stream) => {
    const sample = sampler.sample(seed, stream);
    if (sample.payload !== undefined) return RawJson.fromValue(sample.payload);
    throw notFound(action.action, sample.failure);
  });
}

function notFound(action: string, failure: { field: string; message: string } | undefined): EvregError {
  const last =
    failure === undefined
      ? ""
      : ` The last one made failed: ${failure.field === "" ? "the payload" : failure.field} ${failure.message}.`;
  const message = `No payload that conforms to the schema of ${action} was found.${last} Put one into the schema as an example ("examples": [{…}]), at its root or where it is hard to meet, or write the payload yourself.`;
  return new EvregError("invalid", message, { action });
}
