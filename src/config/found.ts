import { checkText, checkValue, type ConfigValue } from "./values.ts";
import type { ConfigKey } from "./schema.ts";

export type Source = "flag" | "environment" | "file";

/** A value with where it was found. */
export interface Found {
  readonly key: ConfigKey;
  readonly value: ConfigValue;
  readonly source: Source;
  /** For a person: `--port`, `EVREG_PORT`, `/etc/evreg.yaml:3:5`. */
  readonly place: string;
  /** Folder that a relative path in the value starts at. */
  readonly base: string;
}

/** A mistake: where, and a sentence that says what is wrong and what is allowed. */
export interface Problem {
  /** The key as configured, or the name that is none. */
  readonly name: string;
  readonly place: string;
  readonly message: string;
}

/** What one source holds. */
export interface Findings {
  readonly found: Map<string, Found>;
  readonly problems: Problem[];
}

export function findings(): Findings {
  return { found: new Map(), problems: [] };
}

/** Checks one value and files it under its key, or notes what is wrong with it. */
export function note(into: Findings, key: ConfigKey, raw: unknown, at: Omit<Found, "key" | "value">): void {
  const checked =
    typeof raw === "string" && at.source !== "file" ? checkText(key, raw) : checkValue(key, raw);
  if ("problem" in checked) {
    into.problems.push({ name: key.path, place: at.place, message: `${key.path} ${checked.problem}` });
  } else {
    into.found.set(key.path, { key, value: checked.value, ...at });
  }
}
