import { isUtf8 } from "node:buffer";
import { fstatSync, statSync } from "node:fs";
import type { ErrorBody } from "../../domain/error.ts";
import { progressBar } from "../io/progress.ts";
import { counted } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import { usageError } from "../usage-errors.ts";
import type { Line } from "./bulk-input.ts";
import { type BulkOutcome, type BulkState, NOTHING_SETTLED } from "./bulk-run.ts";

export interface BulkFiles {
  /** The path of the NDJSON file; `-` is stdin. */
  readonly path: string;
  /** What the keys of its lines begin with, where they get one. */
  readonly key?: string | undefined;
  readonly rejects?: string | undefined;
}

const SAME_AGAIN = "give the same command again: no line is stored twice.";

/** The result of a bulk, and what to do next. */
export function summary(outcome: BulkOutcome, files: BulkFiles): string {
  const { refused, usedKeys, end, settledLine } = outcome;
  const counts = countsText(outcome);
  if (end === "all") {
    const again = files.key === undefined ? "publish them separately" : "give the same command again";
    const how = files.rejects === undefined ? "." : `; the lines: jq -r .text ${files.rejects}`;
    if (refused === 0) return counts;
    if (files.key === undefined || usedKeys === 0) return `${counts} Fix those lines and ${again}${how}`;
    const are = usedKeys === refused ? "They" : `${usedKeys.toLocaleString("en")} of them`;
    return `${counts} ${are} are not the lines that were published under this key before: give another file, or lines that were changed, another --idempotency-key${how}`;
  }
  if (end === "stopped") {
    if (settledLine === 0)
      return `Nothing was published: ${counted(refused, "line")} refused. Fix ${refused === 1 ? "it" : "them"} and publish all again.`;
    // The keys are made of the lines' numbers, which those of a part of the file would not have.
    const again = files.key === undefined ? `continue with: ${fromLine(settledLine, files)}` : SAME_AGAIN;
    return `${counts} Stopped at line ${settledLine.toLocaleString("en")}; nothing after it was published. Fix it, then ${again}`;
  }
  const stopped = `${end === "interrupted" ? "Interrupted" : "Ended"} after line ${settledLine.toLocaleString("en")}.`;
  return [counts, stopped, ...nextSteps(outcome, files)].join(" ");
}

function countsText({ accepted, replayed, refused }: BulkState): string {
  const existing = replayed === 0 ? "" : `, ${replayed.toLocaleString("en")} already there`;
  return `${counted(accepted - replayed, "event")} published${existing}, ${counted(refused, "line")} refused.`;
}

function nextSteps({ settledLine, lastUncertainLine }: BulkOutcome, files: BulkFiles): string[] {
  if (files.key !== undefined) return ["Give the same command again: no line is stored twice."];
  const next: string[] = [];
  if (lastUncertainLine !== undefined) {
    next.push(
      `Lines ${settledLine + 1} to ${lastUncertainLine} may be published or not; those with an idempotency_key can be sent again without harm.`,
    );
  }
  if (settledLine > 0) next.push(`Continue with: ${fromLine(settledLine + 1, files)}`);
  return next;
}

function fromLine(number: number, { path }: BulkFiles): string {
  return `tail -n +${number} ${path === "-" ? "FILE" : path} | ${nextCommand("publish --batch -")}`;
}

/**
 * Shows on stderr how far a bulk is: a bar when that is a terminal, and log lines above it.
 * @param size bytes of input, where known
 */
export async function bulkProgress(size: number | undefined, nowMs: () => number) {
  const counts = "{published} published{existing}, {refused} refused, {rate}/s";
  const format = size === undefined ? counts : `{bar} {percentage}% | ${counts} | {eta_formatted} left`;
  const startedMs = nowMs();
  const shown = ({ accepted, replayed, refused }: BulkState) => {
    const elapsedS = (nowMs() - startedMs) / 1_000;
    return {
      published: accepted - replayed,
      existing: replayed === 0 ? "" : `, ${replayed} already there`,
      refused,
      rate: elapsedS === 0 ? 0 : Math.round((accepted + refused) / elapsedS).toLocaleString("en"),
    };
  };
  const bar = await progressBar(format, shown(NOTHING_SETTLED));
  const update = (state: BulkState) => bar.update(state.settledBytes, size ?? 1, shown(state));
  return { ...bar, update };
}

/**
 * A refused line as `--rejects` has it: `{"line", "code", "error", "field"?, "text"}`. `text` is the line itself, to be corrected;
 * `text_base64` is one that is not UTF-8, and a line too long to be held has neither.
 */
export function rejected({ number, bytes }: Line, { error, details, code }: ErrorBody): object {
  const { field } = details;
  return {
    line: number,
    code,
    error,
    ...(typeof field === "string" ? { field } : {}),
    ...(bytes === undefined ? {} : textOf(bytes)),
  };
}

function textOf(bytes: Buffer): object {
  return isUtf8(bytes) ? { text: bytes.toString("utf8") } : { text_base64: bytes.toString("base64") };
}

/**
 * The file that is read would be lost if it were written, by whichever of its names, or as stdin.
 * @throws EvregError `usage`
 */
export function mustBeOther(rejects: string, source: string): void {
  const stdin = 0;
  const [written, read] = [fileAt(rejects), fileAt(source === "-" ? stdin : source)];
  if (written === undefined || written !== read) return;
  throw usageError(`--batch and --rejects name the same file, ${rejects}; give each its own.`);
}

/** What is the same for all names of a file; `undefined` where there is none. */
function fileAt(place: string | number): string | undefined {
  try {
    const stats =
      typeof place === "string" ? statSync(place, { bigint: true }) : fstatSync(place, { bigint: true });
    return stats.isFile() ? `${stats.dev} ${stats.ino}` : undefined;
  } catch {
    return undefined;
  }
}
