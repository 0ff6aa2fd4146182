import { addAbortSignal } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { isUtf8 } from "node:buffer";
import { fstatSync, statSync } from "node:fs";
import type { ErrorBody } from "../../domain/error.ts";
import type { Evreg } from "../../evreg.ts";
import { chunksOf, type Input, openInput } from "../io/input.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output } from "../io/output.ts";
import { RecordFile } from "../io/files.ts";
import { counted, escapeControl, escapeControlInJson } from "../io/text.ts";
import { encodeJson } from "../../json/raw-json.ts";
import { boundHeap } from "../../runtime/heap.ts";
import { deprecationNote, noteUndelivered } from "../notes.ts";
import { wrongValue } from "../report-error.ts";
import { EXIT, usageError } from "../usage-errors.ts";
import { type Line, MAX_LINE_BYTES, type PublishItems, readLines, withRetry } from "./bulk-batch.ts";
import {
  type BulkOptions,
  type BulkOutcome,
  type BulkState,
  NOTHING_SETTLED,
  publishLines,
} from "./bulk-run.ts";
import { progressBar } from "../io/progress.ts";
import { nextCommand } from "../target/next-command.ts";

interface BulkPublishOptions extends BulkFiles, Pick<BulkOptions, "concurrency" | "onError"> {
  readonly output: Output;
}

const nowMs = () => performance.now();

/** With 24 MiB, as a server has, a bulk takes 20 MB more and no less processor time. */
const YOUNG_HEAP_BYTES = 8 * 1024 * 1024;

/** Opens the file of a bulk, before anything else, so that a wrong name fails first. */
export function openBulk({ path, rejects }: BulkFiles): Promise<Input> {
  boundHeap(YOUNG_HEAP_BYTES);
  if (rejects !== undefined) mustBeOther(rejects, path);
  return openInput(path);
}

/** Publishes a bulk, prints the result and answers the exit code. */
export async function publishBulk(evreg: Evreg, input: Input, options: BulkPublishOptions): Promise<number> {
  const outcome = await runBulk(evreg, input, options);
  if (options.output.format === "table") {
    await noteUndelivered(evreg, "Deliveries", async () => {
      if (outcome.accepted === 0) return false;
      const pending = await evreg.deliveries.list({ status: "pending", limit: 1 }).catch(() => undefined);
      return (pending?.data.length ?? 0) > 0;
    });
  }
  return report(outcome, options);
}

/** Digits of a line's number in its key. With leading zeros keys grow as lines do, which suits an index. */
const LINE_DIGITS = 9;

async function runBulk(
  { events }: Evreg,
  { stream, size }: Input,
  { path, key, concurrency, onError, output, rejects: rejectsPath }: BulkPublishOptions,
): Promise<BulkOutcome> {
  const rejects = rejectsPath === undefined ? undefined : new RecordFile("--rejects", rejectsPath, "w");
  const signal = interruption();
  const over = new AbortController();
  addAbortSignal(AbortSignal.any([signal, over.signal]), stream);
  const progress = await bulkProgress(size);
  const { log } = progress;
  let refused = 0;
  const warnedOf = new Set<string>();
  const publishWithNotes: PublishItems = async (items, how) => {
    const result = await events.publishBatch(items, how);
    for (const deprecation of result.meta.deprecated ?? []) {
      if (!warnedOf.has(deprecation.action)) log(deprecationNote(deprecation));
      warnedOf.add(deprecation.action);
    }
    return result;
  };
  const sleepMs = (delayMs: number) => sleep(delayMs, undefined, { signal });
  const bulk: BulkOptions = {
    lines: readLines(chunksOf(stream, path), MAX_LINE_BYTES),
    publish: withRetry(publishWithNotes, { signal, nowMs, sleep: sleepMs, log }),
    concurrency,
    keyOf:
      key === undefined ? undefined : ({ number }) => `${key}:${String(number).padStart(LINE_DIGITS, "0")}`,
    onError,
    signal,
    stopReading: () => over.abort(),
    accepted: output.format === "jsonl" ? (published) => output.lines(published) : undefined,
    refused: (line, error) => {
      rejects?.add(rejected(line, error));
      const { number } = line;
      if (output.format !== "table") log(escapeControlInJson(encodeJson({ line: number, ...error })));
      else if (refused < MAX_SHOWN) log(refusalText(number, error));
      refused += 1;
    },
    settled: (state) => progress.update(state),
  };
  try {
    return await publishLines(bulk);
  } finally {
    progress.stop();
    stream.destroy();
    rejects?.sync();
    rejects?.close();
    if (output.format === "table" && refused > MAX_SHOWN) {
      const how = rejectsPath === undefined ? "--output jsonl shows" : `${rejectsPath} holds`;
      note(escapeControl(`${counted(refused - MAX_SHOWN, "more line")} refused; ${how} each refused line.`));
    }
  }
}

/** Prints the counts and what to do next, and answers the exit code. */
async function report(outcome: BulkOutcome, options: BulkPublishOptions): Promise<number> {
  const { onError, output } = options;
  const { end, accepted, refused, replayed } = outcome;
  if (output.format === "json") {
    // As a batch's answer has them; `published` are the new ones among the accepted.
    const meta = { accepted, published: accepted - replayed, rejected: refused, replayed };
    await output.document({ meta });
  }
  if (output.format === "table" || end !== "all") note(escapeControl(summary(outcome, options)));
  if (end === "failed") throw outcome.failure;
  if (end === "interrupted") return EXIT.interrupted;
  if (refused === 0) return EXIT.done;
  return onError === "atomic" ? EXIT.failed : EXIT.someFailed;
}

/** Refused lines that are shown to a person: a file of a million of them must not fill the screen. */
const MAX_SHOWN = 20;

/** A refused line for a person. */
function refusalText(number: number, { error, details }: ErrorBody): string {
  const wrong = wrongValue(error, details);
  const why = escapeControl(error);
  return `Line ${number}: ${wrong === undefined ? why : `${why.replace(/\.$/, "")}: ${wrong}`}`;
}

interface BulkFiles {
  /** The path of the NDJSON file; `-` is stdin. */
  readonly path: string;
  /** What the keys of its lines begin with, where they get one. */
  readonly key?: string | undefined;
  readonly rejects?: string | undefined;
}

const SAME_AGAIN = "give the same command again: no line is stored twice.";

/** The result of a bulk, and what to do next. */
function summary(outcome: BulkOutcome, files: BulkFiles): string {
  const { refused, usedKeys, end, settledLine } = outcome;
  const counts = countsText(outcome);
  if (end === "all") {
    const again = files.key === undefined ? "publish them separately" : "give the same command again";
    const how = files.rejects === undefined ? "." : `; the lines: jq -r .text ${files.rejects}`;
    if (refused === 0) return counts;
    if (files.key === undefined || usedKeys === 0) return `${counts} Fix those lines and ${again}${how}`;
    const all = refused === 1 ? "It" : "They";
    const which = usedKeys === refused ? all : `${usedKeys.toLocaleString("en")} of them`;
    const are = usedKeys === 1 ? "is not the line that was" : "are not the lines that were";
    return `${counts} ${which} ${are} published under this key before: give another file, or lines that were changed, another --idempotency-key${how}`;
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
async function bulkProgress(size: number | undefined) {
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
function rejected({ number, bytes }: Line, { error, details, code }: ErrorBody): object {
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
function mustBeOther(rejects: string, source: string): void {
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
