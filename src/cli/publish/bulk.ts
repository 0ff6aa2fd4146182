import { addAbortSignal } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { ErrorBody } from "../../domain/error.ts";
import type { Evreg } from "../../evreg.ts";
import { chunksOf, type Input, openInput } from "../io/input.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output } from "../io/output.ts";
import { counted, escapeControl, escapeControlInJson } from "../io/text.ts";
import { encodeJson } from "../../json/raw-json.ts";
import { boundHeap } from "../../runtime/heap.ts";
import { deprecationNote, noteUndelivered } from "../notes.ts";
import { wrongValue } from "../report-error.ts";
import { EXIT } from "../usage-errors.ts";
import { MAX_LINE_BYTES, type PublishItems, readLines, withRetry } from "./bulk-batch.ts";
import {
  type BulkOptions,
  type BulkOutcome,
  type BulkState,
  NOTHING_SETTLED,
  publishLines,
} from "./bulk-run.ts";
import { progressBar } from "../io/progress.ts";
import { nextCommand } from "../target/next-command.ts";

interface BulkPublishOptions extends Pick<BulkOptions, "onError"> {
  /** The path of the NDJSON file; `-` is stdin. */
  readonly path: string;
  /** What the keys of its lines begin with, where they get one. */
  readonly key?: string | undefined;
  readonly output: Output;
}

const nowMs = () => performance.now();

/** With 24 MiB, as a server has, a bulk takes 20 MB more and no less processor time. */
const YOUNG_HEAP_BYTES = 8 * 1024 * 1024;

/** Opens the file of a bulk, before anything else, so that a wrong name fails first. */
export function openBulk(path: string): Promise<Input> {
  boundHeap(YOUNG_HEAP_BYTES);
  return openInput(path);
}

/** Publishes a bulk, prints the result and answers the exit code. */
export async function publishBulk(evreg: Evreg, input: Input, options: BulkPublishOptions): Promise<number> {
  const outcome = await runBulk(evreg, input, options);
  if (options.output.format === "table" && outcome.accepted > 0) await noteUndelivered(evreg);
  return report(outcome, options);
}

/** Digits of a line's number in its key. With leading zeros keys grow as lines do, which suits an index. */
const LINE_DIGITS = 9;

async function runBulk(
  { events }: Evreg,
  { stream, size }: Input,
  { path, key, onError, output }: BulkPublishOptions,
): Promise<BulkOutcome> {
  const signal = interruption();
  addAbortSignal(signal, stream);
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
    keyOf:
      key === undefined ? undefined : ({ number }) => `${key}:${String(number).padStart(LINE_DIGITS, "0")}`,
    onError,
    signal,
    accepted: output.format === "jsonl" ? (published) => output.lines(published) : undefined,
    refused: ({ number }, error) => {
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
    if (output.format === "table" && refused > MAX_SHOWN) {
      note(`${counted(refused - MAX_SHOWN, "more line")} refused; --json shows each refused line.`);
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
  const { suggestion } = details;
  const wrong = wrongValue(error, details);
  const why = escapeControl(typeof suggestion === "string" ? `${error} Did you mean ${suggestion}?` : error);
  return `Line ${number}: ${wrong === undefined ? why : `${why.replace(/\.$/, "")}: ${wrong}`}`;
}

/** The result of a bulk, and what to do next. */
function summary(outcome: BulkOutcome, options: BulkPublishOptions): string {
  const { refused, end, settledLine } = outcome;
  const counts = countsText(outcome);
  if (end === "all") {
    const again =
      options.key === undefined
        ? "publish them separately"
        : "give the same command again: it publishes no line twice";
    return refused === 0 ? counts : `${counts} Fix those lines and ${again}.`;
  }
  const fix = `Fix ${refused === 1 ? "it" : "them"}`;
  if (end === "stopped" && settledLine === 0)
    return `Nothing was published: ${counted(refused, "line")} refused. ${fix} and publish all again.`;
  const word = { stopped: "Stopped", interrupted: "Interrupted", failed: "Ended" }[end];
  const after = `${word} after line ${settledLine.toLocaleString("en")}.`;
  const fixing = end === "stopped" ? [`${fix}.`] : [];
  return [counts, after, ...fixing, ...nextSteps(outcome, options)].join(" ");
}

function countsText({ accepted, replayed, refused }: BulkState): string {
  const existing = replayed === 0 ? "" : `, ${replayed.toLocaleString("en")} already there`;
  return `${counted(accepted - replayed, "event")} published${existing}, ${counted(refused, "line")} refused.`;
}

function nextSteps(
  { settledLine, lastUncertainLine }: BulkOutcome,
  { path, key, onError }: BulkPublishOptions,
): string[] {
  if (key !== undefined) return ["Give the same command again: no line is stored twice."];
  const next: string[] = [];
  if (lastUncertainLine !== undefined) {
    next.push(
      `Lines ${settledLine + 1} to ${lastUncertainLine} may be published or not; those with an idempotency_key can be sent again without harm.`,
    );
  }
  if (settledLine > 0) {
    const rest = `tail -n +${settledLine + 1} ${path === "-" ? "FILE" : path}`;
    const command = `publish --batch -${onError === "stop" ? " --on-error stop" : ""}`;
    next.push(`Continue with: ${rest} | ${nextCommand(command)}`);
  }
  return next;
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
