/** What was found when one thing was looked at. */
export interface Finding {
  /** What was looked at, in a word or two. */
  readonly check: string;
  /** A `warning` will become a problem, or is one that may be meant. */
  readonly status: "ok" | "warning" | "problem";
  /** A sentence, without secrets. */
  readonly found: string;
  /** What to do about it; `null` when all is well. */
  readonly remedy: string | null;
}

export interface FindingsMeta {
  /** When it was looked, by the clock of whoever looked; ISO 8601 UTC. */
  readonly time: string;
}

export function fine(check: string, found: string): Finding {
  return { check, status: "ok", found, remedy: null };
}

export function warning(check: string, found: string, remedy: string): Finding {
  return { check, status: "warning", found, remedy };
}

export function problem(check: string, found: string, remedy: string): Finding {
  return { check, status: "problem", found, remedy };
}
