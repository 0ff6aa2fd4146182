// How long and how hard, by variables of the environment.

function numberFrom(name: string, otherwise: number): number {
  const given = process.env[name];
  if (given === undefined) return otherwise;
  const number = Number(given);
  if (!(number > 0)) throw new Error(`${name} must be a number above 0, not ${given}`);
  return number;
}

export const SECONDS = numberFrom("CHAOS_SECONDS", 600);
/** Events published each second. */
export const RATE = numberFrom("CHAOS_RATE", 1_000);
export const SEED = numberFrom("CHAOS_SEED", Math.ceil(Math.random() * 2 ** 31));
/** Where the log and the findings are kept; nowhere without it. */
export const KEPT_IN = process.env["CHAOS_LOG"];
