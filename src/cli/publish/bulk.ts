import { addAbortSignal } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { ErrorBody } from "../../domain/error.ts";
import type { Evreg } from "../../evreg.ts";
import { chunksOf, type Input, openInput } from "../io/input.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output } from "../io/output.ts";
import { RecordFile } from "../io/record-file.ts";
import { counted, escapeControlInJson, escapeControl } from "../io/text.ts";
import { encodeJson } from "../../json/raw-json.ts";
import { boundHeap } from "../../runtime/heap.ts";
import { deprecationNote, noteUndelivered } from "../notes.ts";
import { wrongValue } from "../report-error.ts";
import { EXIT } from "../usage-errors.ts";
import { MAX_LINE_BYTES, withRetry, type PublishItems } from "./bulk-batch.ts";
import { readLines } from "./bulk-input.ts";
import { type BulkFiles, bulkProgress, mustBeOther, rejected, summary } from "./bulk-report.ts";
import { type BulkOptions, type BulkOutcome, publishLines } from "./bulk-run.ts";

interface BulkPublishOptions extends BulkFiles, Pick<BulkOptions, "concurrency" | "onError"> {
  readonly output: Output;
}

const nowMs = () => performance.now();

/** Opens the file of a bulk, before anything else, so that a wrong name fails first. */
export function openBulk({ path, rejects }: BulkFiles): Promise<Input> {
  boundHeap();
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
  const progress = await bulkProgress(size, nowMs);
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
