import { randomInt } from "node:crypto";
import { type Action, SEEDS } from "../domain/action.ts";
import { RawJson } from "../json/raw-json.ts";
import { Sampler } from "../schema/generate/generator.ts";
import { noSample } from "../schema/generate/no-sample.ts";

/** A seed for when none is given. */
export function anySeed(): number {
  return randomInt(SEEDS);
}

/**
 * Payloads that conform to an action's schema, the same for the same seed.
 * @throws `invalid` where none was found
 */
export function samplePayloads(action: Action, seed: number, count: number): RawJson[] {
  const sampler = new Sampler(action.schemata);
  return Array.from({ length: count }, (_, index) => {
    const made = sampler.sample(seed, index);
    if (made.payload === undefined) throw noSample(action.action, made.failure);
    return RawJson.fromValue(made.payload);
  });
}
