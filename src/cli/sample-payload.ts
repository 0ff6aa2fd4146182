import { randomInt } from "node:crypto";
import { type Action, SEEDS } from "../domain/action.ts";
import { encodeJson, RawJson } from "../json/raw-json.ts";
import { Sampler } from "../schema/generate/generator.ts";
import { noSample } from "../schema/generate/no-sample.ts";
import { type OwnMember, setMembers } from "./own-members.ts";
import { usageError } from "./usage-errors.ts";

/** Samples that are tried for one that still conforms with the members that were set. */
const MAX_TRIES = 25;

/** A seed for when none is given. */
export function anySeed(): number {
  return randomInt(SEEDS);
}

/**
 * Payloads that conform to an action's schema, the same for the same seed.
 * @param members set in each of them; where no sample conforms with them, the first one is answered as it is then
 * @throws `invalid` where none was found
 */
export function samplePayloads(
  action: Action,
  seed: number,
  count: number,
  members: readonly OwnMember[] = [],
): RawJson[] {
  const sampler = new Sampler(action.schemata);
  return Array.from({ length: count }, (_, index) => {
    const sample = (turn: number): object => {
      const made = sampler.sample(seed, index + turn * count);
      if (made.payload === undefined) throw noSample(action.action, made.failure);
      return made.payload;
    };
    if (members.length === 0) return RawJson.fromValue(sample(0));
    const turns = Array.from({ length: MAX_TRIES }, (_turn, turn) => turn);
    const conforming = turns.find((turn) => {
      const payload = sample(turn);
      return setMembers(payload, members, false) && sampler.conforms(payload);
    });
    const payload = sample(conforming ?? 0);
    if (!setMembers(payload, members, true)) {
      throw usageError(
        "--set: an item is past the end of its list; set the items before it as well, or the whole list.",
      );
    }
    return RawJson.fromText(encodeJson(payload));
  });
}
