import { isUtf8 } from "node:buffer";
import { closeSync, fstatSync, ftruncateSync, openSync, realpathSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import { type ErrorBody, EvregError } from "../../domain/error.ts";
import { systemReason } from "../io/files.ts";
import { progressBar, MovingRate } from "../io/progress.ts";
import { counted } from "../io/text.ts";
import { encodeJson } from "../../json/raw-json.ts";
import { mustNotBeDataFile } from "../../runtime/data-files.ts";
import { syncFile } from "../../runtime/files.ts";
import { nextCommand } from "../target/next-command.ts";
import { usageError } from "../usage-errors.ts";
import type { Line } from "./bulk-input.ts";
import type { BulkOutcome, BulkState } from "./bulk-run.ts";

export interface BulkFiles {
  /** The path of the NDJSON file; `-` is stdin. */
  readonly path: string;
  readonly checkpoint?: string | undefined;
  readonly rejects?: string | undefined;
}

/** Counts since `from`. */
export function sinceCheckpoint(from: BulkState, state: BulkState): BulkState {
  return {
    ...state,
    accepted: state.accepted - from.accepted,
    replayed: state.replayed - from.replayed,
    refused: state.refused - from.refused,
  };
}

/**
 * The result of a bulk, and what to do next.
 * @param from what the checkpoint said at the start; its counts are among the outcome's
 */
export function summary(outcome: BulkOutcome, files: BulkFiles, from: BulkState): string {
  const { refused, end, settledLine } = outcome;
  const since = countsText(sinceCheckpoint(from, outcome));
  const before =
    from.settledLine === 0
      ? ""
      : ` Before, up to line ${from.settledLine.toLocaleString("en")}: ${countsText(from)}`;
  if (end === "all") {
    const how = files.rejects === undefined ? "." : `; the lines: jq -r .text ${files.rejects}`;
    const fix = refused === 0 ? "" : ` Fix those lines and publish them separately${how}`;
    return settledLine === 0 || settledLine > from.settledLine
      ? `${since}${before}${fix}`
      : `Nothing was left to publish: ${files.checkpoint} says that this file is done.${before}${fix}`;
  }
  if (end === "stopped") {
    return settledLine === 0
      ? `Nothing was published: ${counted(refused, "line")} refused. Fix ${refused === 1 ? "it" : "them"} and publish all again.`
      : `${since} Stopped at line ${settledLine.toLocaleString("en")}; nothing after it was published. Fix it, then continue with: ${fromLine(settledLine, files)}`;
  }
  const stopped = `${end === "interrupted" ? "Interrupted" : "Ended"} after line ${settledLine.toLocaleString("en")}.`;
  return [`${since}${before}`, stopped, ...nextSteps(outcome, files)].join(" ");
}

function countsText({ accepted, replayed, refused }: BulkState): string {
  const existing = replayed === 0 ? "" : `, ${replayed.toLocaleString("en")} already there`;
  return `${counted(accepted - replayed, "event")} published${existing}, ${counted(refused, "line")} refused.`;
}

function nextSteps({ settledLine, lastUncertainLine }: BulkOutcome, files: BulkFiles): string[] {
  if (files.checkpoint !== undefined) {
    return [`The same command continues there, by ${files.checkpoint}; no line is stored twice.`];
  }
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
 * @param from where the bulk begins
 */
export async function bulkProgress(size: number | undefined, from: BulkState, nowMs: () => number) {
  const counts = "{published} published{existing}, {refused} refused, {rate}/s";
  const format = size === undefined ? counts : `{bar} {percentage}% | ${counts} | {eta_formatted} left`;
  const lines = new MovingRate(nowMs);
  const shown = (state: BulkState) => {
    lines.reach(state.accepted + state.refused);
    const { accepted, replayed, refused } = sinceCheckpoint(from, state);
    return {
      published: accepted - replayed,
      existing: replayed === 0 ? "" : `, ${replayed} already there`,
      refused,
      rate: Math.round(lines.perS).toLocaleString("en"),
    };
  };
  const bar = await progressBar(format, shown(from));
  return {
    update: (state: BulkState) => bar.update(state.settledBytes, size ?? 1, shown(state)),
    log: (line: string) => bar.log(line),
    stop: () => bar.stop(),
  };
}

/**
 * The refused lines, as `{"line", "code", "error", "field"?, "errors"?, "text"}` a line. `errors` are all the rules that a
 * payload breaks, `error` the first. `text` is the line itself, to be corrected; `text_base64` is one that is not UTF-8,
 * and a line too long to be held has neither.
 */
export class RejectFile {
  readonly #path: string;
  readonly #file: number;
  #bytes: number;

  /**
   * @param bytes how much of the file stays, when a bulk resumes
   * @throws EvregError `usage` for a path that cannot be written
   */
  constructor(path: string, bytes: number) {
    this.#path = path;
    mustNotBeDataFile(path);
    try {
      this.#file = openSync(path, bytes === 0 ? "w" : "r+", 0o600);
    } catch (error) {
      const isMissing = bytes > 0 && (error as NodeJS.ErrnoException).code === "ENOENT";
      throw isMissing ? tooShort(path) : usageError(this.#unwritten(error));
    }
    if (fstatSync(this.#file).size < bytes) throw tooShort(path);
    ftruncateSync(this.#file, bytes);
    this.#bytes = bytes;
  }

  /** Length of the file, with all that was written. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws EvregError `unavailable` */
  add({ number, bytes }: Line, { error, details, code }: ErrorBody): void {
    const { field, errors } = details;
    const record = {
      line: number,
      code,
      error,
      ...(typeof field === "string" ? { field } : {}),
      ...(Array.isArray(errors) && errors.length > 1 ? { errors } : {}),
      ...(bytes === undefined ? {} : textOf(bytes)),
    };
    const written = Buffer.from(`${encodeJson(record)}\n`);
    this.#write(() => {
      for (let at = 0; at < written.length;) {
        at += writeSync(this.#file, written, at, written.length - at, this.#bytes + at);
      }
    });
    this.#bytes += written.length;
  }

  /** Has the disk hold what was added, so that a checkpoint may count it. @throws EvregError `unavailable` */
  sync(): void {
    this.#write(() => syncFile(this.#file, this.#path));
  }

  close(): void {
    closeSync(this.#file);
  }

  #write(act: () => void): void {
    try {
      act();
    } catch (error) {
      throw new EvregError("unavailable", this.#unwritten(error));
    }
  }

  #unwritten(error: unknown): string {
    return `--rejects: ${this.#path} could not be written (${systemReason(error)}).`;
  }
}

function tooShort(path: string): Error {
  return usageError(
    `--rejects: ${path} is missing or shorter than the checkpoint says. Give the file of the previous run, or start again with another --checkpoint.`,
  );
}

function textOf(bytes: Uint8Array): object {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(buffer) ? { text: buffer.toString("utf8") } : { text_base64: buffer.toString("base64") };
}

/** Files that are written must not be the one that is read, nor each other. */
export function assertDistinctPaths(files: Readonly<Record<string, string | undefined>>): void {
  const seen = new Map<string, string>();
  for (const [name, path] of Object.entries(files)) {
    if (path === undefined || path === "-") continue;
    const real = realPath(path);
    const other = seen.get(real);
    if (other !== undefined)
      throw usageError(`${other} and ${name} name the same file, ${path}; give each its own.`);
    seen.set(real, name);
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

/** Lines with the same reason that are shown; further ones are counted. */
const SHOWN_PER_REASON = 5;
/** Names that are looked up for what they may have been meant as. */
const MAX_MISSING = 20;
/** Lines with reasons beyond this number are all shown: the summary must not grow with the file. */
const MAX_REASONS = 1_000;

/** Keeps a file of a million lines, all refused for one reason, from filling the screen. */
export class ErrorSummary {
  readonly #byReason = new Map<string, { lines: number; lastLine: number }>();

  /** The first actions that are not there; they may have been mistyped. */
  readonly missingActions = new Set<string>();

  /** Counts a refused line; answers whether to show it. */
  add(
    line: number,
    { error: reason, details: { record, value } }: Pick<ErrorBody, "error" | "details">,
  ): boolean {
    if (record === "action" && this.missingActions.size < MAX_MISSING) this.missingActions.add(String(value));
    const known = this.#byReason.get(reason);
    if (known === undefined) {
      if (this.#byReason.size < MAX_REASONS) this.#byReason.set(reason, { lines: 1, lastLine: line });
      return true;
    }
    known.lines += 1;
    known.lastLine = line;
    return known.lines <= SHOWN_PER_REASON;
  }

  /**
   * A sentence for each reason with lines that were not shown, and how to see them.
   * @param rejects the file that holds each of them, if one does
   */
  remaining(rejects: string | undefined): readonly string[] {
    const counts = [...this.#byReason]
      .filter(([, { lines }]) => lines > SHOWN_PER_REASON)
      .map(([reason, { lines, lastLine }]) => {
        return `${counted(lines - SHOWN_PER_REASON, "more line")}, up to line ${lastLine}: ${reason}`;
      });
    if (counts.length === 0) return counts;
    const how = rejects === undefined ? "--output jsonl shows" : `${rejects} holds`;
    return [...counts, `${how} each refused line.`];
  }
}
