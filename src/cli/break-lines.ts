import type { ErrorDetails } from "../domain/error.ts";
import { encodeJson } from "../json/encode.ts";
import type { Failure } from "../schema/failure.ts";
import { printableJson, printableLine } from "./printable.ts";

/** Longest detail shown on a line of its own; a whole payload would push the message off the screen. */
const LONGEST_DETAIL = 400;

/** What a break of a schema tells beside its message: a payload that shows it, and what could be done instead. */
export function breakLines({ example, remedy }: { example?: unknown; remedy?: unknown }): string[] {
  return [
    ...(example === undefined ? [] : [`shown by: ${shortDetail(example)}`]),
    ...(typeof remedy === "string" ? [`instead: ${printableLine(remedy)}`] : []),
  ];
}

/** The rules that a payload breaks beside the first, which the message tells. */
export function brokenRules({ errors }: ErrorDetails): string[] {
  if (!Array.isArray(errors)) return [];
  return (errors as readonly Partial<Failure>[]).slice(1).map(({ field = "", message = "", value }) => {
    const shown = value === null || value === undefined ? "" : `: ${shortDetail(value)}`;
    return `${printableLine(field === "" ? "it" : field)} ${printableLine(message)}${shown}`;
  });
}

/** A value on one line, cut where it is long. */
export function shortDetail(value: unknown): string {
  const shown = typeof value === "string" ? printableLine(value) : printableJson(encodeJson(value));
  return shown.length > LONGEST_DETAIL ? `${shown.slice(0, LONGEST_DETAIL)}…` : shown;
}
