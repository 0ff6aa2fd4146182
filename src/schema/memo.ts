import { spend } from "./budget.ts";

/** Above this many members the names are kept: V8 lists those of a large object in 130 ns each, every time it is asked. */
const KEPT_NAMES = 16;
const STEPS_PER_LISTED_NAME = 6;
/** Keys longer than this are escaped once, not for every error beneath them. */
const SHORT_KEY = 32;

const memberNames = new Map<object, readonly string[]>();
const pointerSteps = new Map<string, string>();
const repeats = new Map<object, number>();
const texts = new Map<object, string>();

const MAPS: readonly Map<unknown, unknown>[] = [memberNames, pointerSteps, repeats, texts];

/** What the validation now running has found out about its payload, so that each schema need not do so again. */
export const memo = { repeats, texts } as const;

/** To be called when a validation ends, as its payload should not be held any longer. */
export function forget(): void {
  // To clear a map that is empty makes a new table for it all the same.
  for (const map of MAPS) if (map.size > 0) map.clear();
}

/** The names of an object's own members. */
export function namesOf(value: object): readonly string[] {
  const known = memberNames.get(value);
  if (known !== undefined) {
    spend(1);
    return known;
  }
  const listed = Object.keys(value);
  if (listed.length <= KEPT_NAMES) {
    spend(1 + (listed.length >> 2));
    return listed;
  }
  spend(STEPS_PER_LISTED_NAME * listed.length);
  memberNames.set(value, listed);
  return listed;
}

/** A member's name as a step of a JSON pointer. */
export function pointerStep(key: string): string {
  if (key.length <= SHORT_KEY) return escaped(key);
  let step = pointerSteps.get(key);
  if (step === undefined) {
    spend(key.length >> 2);
    step = escaped(key);
    pointerSteps.set(key, step);
  }
  return step;
}

function escaped(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
