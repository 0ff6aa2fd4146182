import { isUtf8 } from "node:buffer";
import { appendFileSync, closeSync, openSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { type ErrorBody, EvregError } from "../../domain/error.ts";
import { systemReason } from "../io/files.ts";
import { progressBar } from "../io/progress.ts";
import { counted } from "../io/text.ts";
import { encodeJson } from "../../json/raw-json.ts";
import { mustNotBeDataFile } from "../../runtime/data-files.ts";
import { syncFile } from "../../runtime/files.ts";
import { nextCommand } from "../target/next-command.ts";
import { usageError } from "../usage-errors.ts";
import type { Line } from "./bulk-input.ts";
import { type BulkOutcome, type BulkState, NOTHING_SETTLED } from "./bulk-run.ts";

export interface BulkFiles {
  /** The path of the NDJSON file; `-` is stdin. */
  readonly path: string;
  readonly checkpoint?: string | undefined;
  readonly rejects?: string | undefined;
}

/**
 * The result of a bulk, and what to do next.
 * @param after the line behind which this run began
 */
export function summary(outcome: BulkOutcome, files: BulkFiles, after: number): string {
  const { refused, end, settledLine } = outcome;
  const counts = countsText(outcome);
  if (end === "all") {
    if (settledLine > 0 && settledLine === after)
      return `Nothing was left to publish: ${files.checkpoint} says that this file is done.`;
    const how = files.rejects === undefined ? "." : `; the lines: jq -r .text ${files.rejects}`;
    return refused === 0 ? counts : `${counts} Fix those lines and publish them separately${how}`;
  }
  if (end === "stopped") {
    return settledLine === 0
      ? `Nothing was published: ${counted(refused, "line")} refused. Fix ${refused === 1 ? "it" : "them"} and publish all again.`
      : `${counts} Stopped at line ${settledLine.toLocaleString("en")}; nothing after it was published. Fix it, then continue with: ${fromLine(settledLine, files)}`;
  }
  const stopped = `${end === "interrupted" ? "Interrupted" : "Ended"} after line ${settledLine.toLocaleString("en")}.`;
  return [counts, stopped, ...nextSteps(outcome, files)].join(" ");
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
  return {
    update: (state: BulkState) => bar.update(state.settledBytes, size ?? 1, shown(state)),
    log: (line: string) => bar.log(line),
    stop: () => bar.stop(),
  };
}

/**
 * The refused lines, as `{"line", "code", "error", "field"?, "text"}` a line. `text` is the line itself, to be corrected; `text_base64` is one that is not UTF-8,
 * and a line too long to be held has neither.
 */
export class RejectFile {
  readonly #path: string;
  readonly #file: number;

  /**
   * @param continues whether what is in the file stays, as a bulk resumes
   * @throws EvregError `usage` for a path that cannot be written
   */
  constructor(path: string, continues: boolean) {
    this.#path = path;
    mustNotBeDataFile(path);
    try {
      this.#file = openSync(path, continues ? "a" : "w", 0o600);
    } catch (error) {
      throw usageError(this.#unwritten(error));
    }
  }

  /** @throws EvregError `unavailable` */
  add({ number, bytes }: Line, { error, details, code }: ErrorBody): void {
    const { field } = details;
    const record = {
      line: number,
      code,
      error,
      ...(typeof field === "string" ? { field } : {}),
      ...(bytes === undefined ? {} : textOf(bytes)),
    };
    this.#write(() => appendFileSync(this.#file, `${encodeJson(record)}\n`));
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

/** A path without links: to empty a link to the file that is read would lose that. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
