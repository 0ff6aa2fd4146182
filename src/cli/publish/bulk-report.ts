import { isUtf8 } from "node:buffer";
import { closeSync, fstatSync, ftruncateSync, openSync, realpathSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import { type ErrorBody, EvregError } from "../../domain/error.ts";
import { systemReason } from "../io/files.ts";
import { progressBar, MovingRate } from "../io/progress.ts";
import { counted } from "../io/text.ts";
import { encodeJson } from "../../json/raw-json.ts";
import { syncFile } from "../../runtime/files.ts";
import { nextCommand } from "../target/next-command.ts";
import { usageError } from "../usage-errors.ts";
import type { Line } from "./bulk-input.ts";
import type { BulkOutcome, BulkState } from "./bulk-run.ts";

export interface BulkFiles {
  /** Of the NDJSON file; `-` is stdin. */
  readonly path: string;
  readonly checkpoint?: string | undefined;
  readonly rejects?: string | undefined;
}

/** What came about since `from`. */
export function sinceCheckpoint<T extends BulkState>(from: BulkState, state: T): T {
  return {
    ...state,
    accepted: state.accepted - from.accepted,
    replayed: state.replayed - from.replayed,
    refused: state.refused - from.refused,
  };
}

/**
 * Where a bulk resumes; `undefined` where it starts at the beginning or has nothing left to do.
 * @param size of the file, in bytes
 */
export function resumeNote(
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
      : ` Before, up to line ${from.settledLine.toLocaleString("en")}: ${countsText(from)}`;
  if (end === "all") {
    const mend = refused === 0 ? "" : ` ${mending(files)}`;
    return settledLine === 0 || settledLine > from.settledLine
      ? `${countsText(sinceCheckpoint(from, outcome))}${before}${mend}`
      : `Nothing was left to publish: ${files.checkpoint} says that this file is done.${before}${mend}`;
  }
  if (end === "stopped") {
    return settledLine === 0
      ? `Nothing was published: ${counted(refused, "line")} refused. Mend ${refused === 1 ? "it" : "them"} and publish all again.`
      : `${countsText(outcome)} Stopped at line ${settledLine}; nothing behind it was published. Mend it, then go on with: ${fromLine(settledLine, files)}`;
  }
  const place = `${end === "interrupted" ? "Interrupted" : "It came to an end"} behind line ${settledLine}.`;
  return [`${countsText(sinceCheckpoint(from, outcome))}${before}`, place, ...nextSteps(outcome, files)].join(
    " ",
  );
}

function countsText({ accepted, replayed, refused }: BulkState): string {
  const there = replayed === 0 ? "" : `, ${replayed.toLocaleString("en")} already there`;
  return `${counted(accepted - replayed, "event")} published${there}, ${counted(refused, "line")} refused.`;
}

function mending({ rejects }: BulkFiles): string {
  return rejects === undefined
    ? "Mend those and publish them by themselves."
    : `Mend those and publish them by themselves; the lines: jq -r .text ${rejects}`;
}

function nextSteps({ settledLine, lastUncertainLine }: BulkOutcome, files: BulkFiles): string[] {
  if (files.checkpoint !== undefined) {
    return [`The same command goes on from there, by ${files.checkpoint}; no line is stored twice.`];
  }
  const next: string[] = [];
  if (lastUncertainLine !== undefined) {
    next.push(
      `Whether lines ${settledLine + 1} to ${lastUncertainLine} were published is not known; those with an idempotency_key can be sent again without harm.`,
    );
  }
  if (settledLine > 0) next.push(`Go on with: ${fromLine(settledLine + 1, files)}`);
  return next;
}

function fromLine(number: number, { path }: BulkFiles): string {
  return `tail -n +${number} ${path === "-" ? "FILE" : path} | ${nextCommand("publish --batch -")}`;
}

/** Shows on stderr how far a bulk has come, with log lines in between. */
interface BulkProgress {
  update(state: BulkState): void;
  /** One line on stderr; with a bar shown, above it. */
  log(line: string): void;
  stop(): void;
}

const NO_BAR: BulkProgress = {
  update() {},
  log: (line) => void process.stderr.write(`${line}\n`),
  stop() {},
};

interface BulkProgressOptions {
  /** Bytes of input, where known. */
  readonly size: number | undefined;
  /** Where the bulk begins. */
  readonly from: BulkState;
  readonly nowMs: () => number;
}

/** A bar when stderr is a terminal, nothing elsewhere. */
export async function bulkProgress({ size, from, nowMs }: BulkProgressOptions): Promise<BulkProgress> {
  const counts = "{published} published{there}, {refused} refused, {rate}/s";
  const format = size === undefined ? counts : `{bar} {percentage}% | ${counts} | {left} left`;
  const lines = new MovingRate(nowMs);
  const bytes = new MovingRate(nowMs);
  const shown = (state: BulkState) => {
    const { settledBytes, accepted, replayed, refused } = sinceCheckpoint(from, state);
    return {
      published: accepted - replayed,
      there: replayed === 0 ? "" : `, ${replayed} already there`,
      refused,
      rate: Math.round(lines.perS).toLocaleString("en"),
      left: timeLeft((size ?? 0) - settledBytes, bytes.perS),
    };
  };
  const note = (state: BulkState): void => {
    lines.reach(state.accepted + state.refused);
    bytes.reach(state.settledBytes);
  };
  note(from);
  const bar = await progressBar(format, shown(from));
  if (bar === undefined) return NO_BAR;
  return {
    update: (state) => {
      note(state);
      bar.update(state.settledBytes, size ?? 1, shown(state));
    },
    log: (line) => bar.log(line),
    stop: () => bar.stop(),
  };
}

/** Such as `1h 4m`, `3m 20s` or `8s`; a dash while nothing can be said. */
function timeLeft(bytes: number, bytesPerS: number): string {
  if (bytesPerS <= 0) return "–";
  const seconds = Math.ceil(bytes / bytesPerS);
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
  return minutes > 0 ? `${minutes}m ${seconds % 60}s` : `${seconds}s`;
}

/**
 * The refused lines, in a file of the person's own: `{"line", "code", "error", "field"?, "errors"?, "text"}` a line.
 * `errors` are all the rules that a payload breaks, `error` being the first. `text` is the line itself, so that
 * a mended one can be made of it; `text_base64` stands for one that is not UTF-8, and neither for one too long to be held.
 */
export class RejectFile {
  readonly #path: string;
  readonly #file: number;
  #bytes: number;

  /**
   * @param bytes how much of the file is kept, when a bulk goes on
   * @throws EvregError `usage` for a place that cannot be written, `unavailable` when the disk refuses
   */
  constructor(path: string, bytes: number) {
    this.#path = path;
    try {
      this.#file = openSync(path, bytes === 0 ? "w" : "r+", 0o600);
    } catch (error) {
      throw bytes > 0 && (error as NodeJS.ErrnoException).code === "ENOENT"
        ? tooShort(path)
        : this.#unwritten(error, usageError);
    }
    if (fstatSync(this.#file).size < bytes) throw tooShort(path);
    ftruncateSync(this.#file, bytes);
    this.#bytes = bytes;
  }

  /** Of the file, with all that was written. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws EvregError `unavailable` */
  add({ number, bytes }: Line, { error, details, code }: ErrorBody): void {
    const { field, errors } = details;
    const text = bytes === undefined ? {} : textOf(bytes);
    const record = {
      line: number,
      code,
      error,
      ...(typeof field === "string" ? { field } : {}),
      ...(Array.isArray(errors) && errors.length > 1 ? { errors } : {}),
      ...text,
    };
    const written = Buffer.from(`${encodeJson(record)}\n`);
    try {
      for (let at = 0; at < written.length;) {
        at += writeSync(this.#file, written, at, written.length - at, this.#bytes + at);
      }
      this.#bytes += written.length;
    } catch (failure) {
      throw this.#unwritten(failure, (message) => new EvregError("unavailable", message));
    }
  }

  /** Has the disk hold what was added, so that a checkpoint may count it. @throws EvregError `unavailable` */
  sync(): void {
    try {
      syncFile(this.#file, this.#path);
    } catch (failure) {
      throw this.#unwritten(failure, (message) => new EvregError("unavailable", message));
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #unwritten(error: unknown, make: (message: string) => Error): Error {
    return make(`--rejects: ${this.#path} could not be written (${systemReason(error)}).`);
  }
}

function tooShort(path: string): Error {
  return usageError(
    `--rejects: ${path} is not there or shorter than the checkpoint says. Give the file of the run before, or begin anew with another --checkpoint.`,
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
    const place = placeOf(path);
    const other = seen.get(place);
    if (other !== undefined)
      throw usageError(`${other} and ${name} name the same file, ${path}; give each its own.`);
    seen.set(place, name);
  }
}

function placeOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

/** So many lines with the same reason are shown one by one; further ones are counted. */
const SHOWN_PER_REASON = 5;
/** Lines with reasons beyond this number are all shown: the summary must not grow with the file. */
const MAX_REASONS = 1_000;

interface Reason {
  lines: number;
  lastLine: number;
}

/** Keeps a file of a million lines, all refused alike, from filling the screen with one sentence. */
export class ErrorSummary {
  readonly #alike = new Map<string, Reason>();

  /** Counts a refused line; answers whether to show it by itself. */
  add(line: number, reason: string): boolean {
    const known = this.#alike.get(reason);
    if (known === undefined) {
      if (this.#alike.size < MAX_REASONS) this.#alike.set(reason, { lines: 1, lastLine: line });
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
    const sums: string[] = [];
    for (const [reason, { lines, lastLine }] of this.#alike) {
      const more = lines - SHOWN_PER_REASON;
      if (more < 1) continue;
      sums.push(`${counted(more, "more line")}, up to line ${lastLine}: ${reason}`);
    }
    if (sums.length === 0) return sums;
    return [
      ...sums,
      rejects === undefined
        ? "--output jsonl tells each refused line."
        : `${rejects} holds each refused line.`,
    ];
  }
}
