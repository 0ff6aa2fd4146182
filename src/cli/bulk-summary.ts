import type { BulkOutcome, BulkState } from "./bulk-publisher.ts";
import { nextCommand } from "./next-command.ts";

export interface BulkFiles {
  /** Of the NDJSON file; `-` is stdin. */
  readonly path: string;
  readonly checkpoint?: string | undefined;
  readonly rejects?: string | undefined;
}

/**
 * What became of a bulk, and how to go on.
 * @param from how far the checkpoint said it had come before; what it counts is among the outcome's
 */
export function summary(outcome: BulkOutcome, files: BulkFiles, from: BulkState): string {
  const { accepted, replayed, refused, end, settledLine } = outcome;
  const there = replayed === 0 ? "" : `, ${replayed.toLocaleString("en")} already there`;
  const counts = `${many(accepted - replayed, "event")} published${there}, ${many(refused, "line")} refused.`;
  if (end === "all") {
    const told = refused === 0 ? counts : `${counts} ${mending(files)}`;
    if (settledLine === 0 || settledLine > from.settledLine) return told;
    return `Nothing was left to publish: ${files.checkpoint} says that this file is done. With what went before: ${told}`;
  }
  if (end === "stopped") {
    return settledLine === 0
      ? `Nothing was published: ${many(refused, "line")} refused. Mend ${refused === 1 ? "it" : "them"} and publish all again.`
      : `${counts} Stopped at line ${settledLine}; nothing behind it was published. Mend it, then go on with: ${fromLine(settledLine, files)}`;
  }
  const place = `${end === "interrupted" ? "Interrupted" : "It came to an end"} behind line ${settledLine}.`;
  return [counts, place, ...goingOn(outcome, files)].join(" ");
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
