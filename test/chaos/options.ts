// How long and how hard, by variables of the environment.

function numberFrom(name: string, otherwise: number): number {
  const given = process.env[name];
  if (given === undefined) return otherwise;
  const number = Number(given);
  if (!(number > 0)) throw new Error(`${name} must be a number above 0, not ${given}`);
  return number;
}

const FAULTS = ["kill", "stop", "restart", "link", "terminate"] as const;
export type FaultKind = (typeof FAULTS)[number];

function faultsFrom(given: string | undefined): ReadonlySet<FaultKind> {
  if (given === undefined) return new Set(FAULTS);
  const names = given.split(",").filter((name) => name !== "");
  const unknown = names.find((name) => !FAULTS.some((fault) => fault === name));
  if (unknown !== undefined) throw new Error(`CHAOS_FAULTS has ${unknown}; there are ${FAULTS.join(", ")}`);
  return new Set(FAULTS.filter((fault) => names.includes(fault)));
}

export const SECONDS = numberFrom("CHAOS_SECONDS", 600);
/** Events published each second. */
export const RATE = numberFrom("CHAOS_RATE", 1_000);
/** Which faults there are. */
export const CHAOS = faultsFrom(process.env["CHAOS_FAULTS"]);
export const SEED = numberFrom("CHAOS_SEED", Math.ceil(Math.random() * 2 ** 31));
/** Where the log and the findings are kept; nowhere without it. */
export const KEPT_IN = process.env["CHAOS_LOG"];

/** Mulberry32: the same numbers for the same seed. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
