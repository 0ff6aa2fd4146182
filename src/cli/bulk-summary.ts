import type { BulkOutcome, BulkState } from "./bulk-publisher.ts";
import { nextCommand } from "./next-command.ts";

export interface BulkFiles {
  /** Of the NDJSON file; `-` is stdin. */
  readonly path: string;
  readonly checkpoint?: string | undefined;
  readonly rejects?: string | undefined;
}

/** What came about since `from`. */
export function behind<T extends BulkState>(from: BulkState, state: T): T {
  return {
    ...state,
    accepted: state.accepted - from.accepted,
    replayed: state.replayed - from.replayed,
    refused: state.refused - from.refused,
  };
}

/**
 * Where a bulk goes on; `undefined` where it begins anew or has nothing left.
 * @param size of the file, in bytes
 */
export function goesOn(
  { settledLine, settledBytes }: BulkState,
  size: number | undefined,
  { path, checkpoint }: BulkFiles,
  hasGrown: boolean,
): string | undefined {
  if (settledLine === 0 || settledBytes === size) return undefined;
  const grown = hasGrown ? `${path} has grown. ` : "";
  return `${grown}Going on behind line ${settledLine.toLocaleString("en")} of ${path}, by ${checkpoint}.`;
}

/**
 * What became of a bulk, and how to go on.
 * @param from how far the checkpoint said it had come before; what it counts is among the outcome's
 */
export function summary(outcome: BulkOutcome, files: BulkFiles, from: BulkState): string {
  const { refused, end, settledLine } = outcome;
  const before =
    from.settledLine === 0
      ? ""
      : ` Before, up to line ${from.settledLine.toLocaleString("en")}: ${counts(from)}`;
  if (end === "all") {
    const mend = refused === 0 ? "" : ` ${mending(files)}`;
    return settledLine === 0 || settledLine > from.settledLine
      ? `${counts(behind(from, outcome))}${before}${mend}`
      : `Nothing was left to publish: ${files.checkpoint} says that this file is done.${before}${mend}`;
  }
  if (end === "stopped") {
    return settledLine === 0
      ? `Nothing was published: ${many(refused, "line")} refused. Mend ${refused === 1 ? "it" : "them"} and publish all again.`
      : `${counts(outcome)} Stopped at line ${settledLine}; nothing behind it was published. Mend it, then go on with: ${fromLine(settledLine, files)}`;
  }
  const place = `${end === "interrupted" ? "Interrupted" : "It came to an end"} behind line ${settledLine}.`;
  return [`${counts(behind(from, outcome))}${before}`, place, ...goingOn(outcome, files)].join(" ");
}

function counts({ accepted, replayed, refused }: BulkState): string {
  const there = replayed === 0 ? "" : `, ${replayed.toLocaleString("en")} already there`;
  return `${many(accepted - replayed, "event")} published${there}, ${many(refused, "line")} refused.`;
}

function mending({ rejects }: BulkFiles): string {
  return rejects === undefined
    ? "Mend those and publish them by themselves."
    : `Mend those and publish them by themselves; the lines: jq -r .text ${rejects}`;
}

function goingOn({ settledLine, doubtfulLine }: BulkOutcome, files: BulkFiles): string[] {
  if (files.checkpoint !== undefined) {
    return [`The same command goes on from there, by ${files.checkpoint}; no line is stored twice.`];
  }
  const next: string[] = [];
  if (doubtfulLine !== undefined) {
    next.push(
      `Whether lines ${settledLine + 1} to ${doubtfulLine} were published is not known; those with an idempotency_key can be sent again without harm.`,
    );
  }
  if (settledLine > 0) next.push(`Go on with: ${fromLine(settledLine + 1, files)}`);
  return next;
}

function fromLine(number: number, { path }: BulkFiles): string {
  return `tail -n +${number} ${path === "-" ? "FILE" : path} | ${nextCommand("publish --batch -")}`;
}

function many(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
