import { Args, type Command, Flags } from "@oclif/core";
import { COMPATIBILITY_MODES } from "../model/action.ts";
import {
  ISO_TIME_EXPECTED,
  MINUTES_AND_UP,
  parseDurationMs,
  parseIsoTime,
  pastTime,
} from "../domain/formats.ts";
import type { JsonSchema } from "../domain/request.ts";
import { type FieldKind, Unreadable } from "../model/value-kinds.ts";
import { systemClock, toIso } from "../runtime/clock.ts";
import { usageError } from "./usage-errors.ts";

const GLOBAL = { helpGroup: "GLOBAL" };

/** Every command has these: they say how its answer is printed. */
export const outputFlags = {
  json: Flags.boolean({
    summary: "Print one JSON document, as the API answers it.",
    exclusive: ["output"],
    ...GLOBAL,
  }),
  output: choiceFlag(
    "table for people, json, or jsonl: a record a line.",
    ["table", "json", "jsonl"],
    GLOBAL,
  ),
};

/** Every command that has settings has these: they say where those come from. */
export const commonFlags = {
  data: textFlag("The data folder (default ./.evreg).", "FOLDER", GLOBAL),
  config: textFlag("The configuration file to read.", "FILE", GLOBAL),
  ...outputFlags,
};

/** Commands that act on an evreg somewhere have these. */
export const targetFlags = {
  url: textFlag("The server to talk to.", "URL", { ...GLOBAL, exclusive: ["data"] }),
  token: textFlag("The token for the server; --token-file keeps it off the command line.", "TOKEN", GLOBAL),
  "token-file": textFlag("A file that holds the token for the server.", "FILE", {
    ...GLOBAL,
    exclusive: ["token"],
  }),
};

/** An argument that must be there. Arguments never come from stdin, unless they are `-` and the command says so. */
export function textArg(description: string) {
  return Args.string({ description, required: true, ignoreStdin: true });
}

/** A text argument that may be left out. */
export function optionalArg(description: string) {
  return Args.string({ description, ignoreStdin: true });
}

const rowid = Args.custom<number>({ parse: (text) => Promise.resolve(rowidOf(text)) });

/** The number of a record. @param noun as listings have it */
export function rowidArg(noun: string) {
  const description = `Number of the ${noun}: its ID in listings, rowid in JSON.`;
  return rowid({ description, required: true, ignoreStdin: true });
}

/** @throws `usage` for a text that is no whole number */
export function rowidOf(text: string): number {
  return wholeNumber("ID ", text);
}

/** A flag that sets a member of a request, which is called as the flag is unless `member` says otherwise. */
export type MemberFlag = Command.Flag.Any & { readonly member?: string };

interface FlagSettings {
  /** @see MemberFlag */
  readonly member?: string;
  readonly helpValue?: string;
  readonly helpGroup?: string;
  readonly aliases?: string[];
  readonly exclusive?: string[];
  readonly dependsOn?: string[];
}

/** A flag that takes a text. @param helpValue what help shows in its place */
export function textFlag(summary: string, helpValue: string, more: FlagSettings = {}) {
  return Flags.string({ summary, helpValue, ...more });
}

/** A flag that must be given. */
export function requiredFlag(summary: string, helpValue: string, more: { aliases?: string[] } = {}) {
  return Flags.string({ summary, helpValue, required: true, ...more });
}

/** A flag that takes one of some words. */
export function choiceFlag<const T extends string>(
  summary: string,
  options: readonly T[],
  more: FlagSettings = {},
) {
  return Flags.option({ summary, options, helpValue: options.join("|"), ...more })();
}

/** A flag that takes a whole number, from 0 unless `min` says otherwise. */
export function numberFlag(
  summary: string,
  { min = 0, max = Infinity, ...more }: FlagSettings & { readonly min?: number; readonly max?: number } = {},
) {
  const parse = (text: string): Promise<number> => {
    const value = wholeNumber("", text);
    if (value >= min && value <= max) return Promise.resolve(value);
    const upTo = max === Infinity ? "" : ` to ${max.toLocaleString("en")}`;
    throw usageError(`takes a number from ${min}${upTo}, not ${value}.`);
  };
  return Flags.custom<number>({ parse })({ summary, helpValue: "NUMBER", ...more });
}

/** Commands that bring a data folder up to what this evreg needs have it. */
export const acceptLossFlag = Flags.boolean({
  summary:
    "Go on without what a damaged log has lost, which is refused otherwise. Both files are kept as they were, and no number is given out again.",
});

/** A flag that takes a time of the past, see `pastTime`. */
export const timeFlag = Flags.custom({
  helpValue: "TIME",
  parse: (text) => {
    const time = pastTime(text, systemClock.now());
    if (parseIsoTime(time) !== undefined) return Promise.resolve(time);
    throw usageError(`${TIME_EXPECTED}; not ${JSON.stringify(text)}.`);
  },
});

/** The beginning and the end of a time range. @param what is in it, such as `Events published` */
export function rangeFlags(what: string) {
  return {
    from: timeFlag({
      summary: `${what} from this time on, inclusive: 1h or 2d ago, a date for its 00:00 UTC, or ISO 8601 (also --since).`,
      aliases: ["since"],
    }),
    to: timeFlag({ summary: `${what} before this time, exclusive; written as --from is.` }),
  };
}

const TIME_EXPECTED = `${ISO_TIME_EXPECTED}; or a date alone, such as 2026-01-31, for its 00:00 UTC; or how long ago, such as 30m, 1h or 2d`;

const SCHEMA = {
  summary:
    "The JSON Schema (schemata in the API): a file, as JSON or YAML, - for stdin, or the schema itself.",
  aliases: ["schemata"],
  helpValue: "FILE",
  member: "schemata",
};
export const schemaFlag = Flags.custom(SCHEMA);

/** Whom changes of a schema must not break. */
export function modeFlag(summary: string) {
  return choiceFlag(summary, COMPATIBILITY_MODES);
}

/** @param subject what a message begins with; for a flag its name is put there anyway */
function wholeNumber(subject: string, text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw usageError(`${subject}takes a whole number, not ${JSON.stringify(text)}.`);
  }
  return value;
}

/** The members that were given: a flag left out must not be sent as a member that is `undefined`. */
export function definedOnly<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const defined = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Whether a listing leaves records out, so that an empty one does not mean that there are none. */
export function hasFilters(query: object): boolean {
  return Object.keys(query).some((name) => !["order", "limit", "deliveries"].includes(name));
}

/** The value that a flag's text stands for. @throws `usage` for a text that its kind does not read */
export function flagValue<T>(flag: string, text: string, kind: FieldKind<T>, schema: JsonSchema): T {
  try {
    return kind.read(text, schema);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    throw usageError(`--${flag}: ${error.message}.`);
  }
}

/** Past this a Date has no ISO form. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** `90d`, `12h` or `30m` from now as ISO 8601; an ISO 8601 time as it is. `usage` for any other text. */
export function expiry(text: string, nowMs: number): string {
  const span = parseDurationMs(text, MINUTES_AND_UP);
  if (span === undefined) {
    if (parseIsoTime(text) !== undefined) return text;
    throw usageError(
      `--expires: must be a time from now on, such as 90d, 12h or 30m, or an ISO 8601 date and time with its zone, such as 2030-01-31T09:30:00Z; not ${JSON.stringify(text)}.`,
    );
  }
  const atMs = nowMs + span;
  if (atMs > LAST_MS)
    throw usageError(`--expires: ${text} is too far away; leave it out for a token that never ends.`);
  return toIso(atMs);
}
