import { addAbortSignal } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { ErrorBody } from "../../domain/error.ts";
import type { Evreg } from "../../evreg.ts";
import { chunksOf, type Input, openInput } from "../io/input.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output } from "../io/output.ts";
import { counted, escapeControlInJson, escapeControl } from "../io/text.ts";
import { encodeJson } from "../../json/raw-json.ts";
import { boundHeap } from "../../runtime/heap.ts";
import { deprecationNote, noteUndelivered } from "../notes.ts";
import { wrongValue } from "../report-error.ts";
import type { Target } from "../target/target.ts";
import { EXIT } from "../usage-errors.ts";
import { MAX_LINE_BYTES, withRetry, type PublishItems } from "./bulk-batch.ts";
import { BulkSource, readLines } from "./bulk-input.ts";
import { assertDistinctPaths, type BulkFiles, bulkProgress, RejectFile, summary } from "./bulk-report.ts";
import {
  type BulkOptions,
  type BulkOutcome,
  type BulkState,
  NOTHING_SETTLED,
  publishAllOrNothing,
  publishLines,
} from "./bulk-run.ts";
import { Checkpoint } from "./checkpoint.ts";

interface BulkPublishOptions extends BulkFiles {
  readonly atomic: boolean;
  readonly concurrency: number;
  readonly onError: "continue" | "stop";
  readonly output: Output;
}

interface OpenedBulk {
  readonly input: Input;
  readonly checkpoint: Checkpoint | undefined;
  readonly publish: PublishItems;
}

/** A bulk whose file is open. */
interface Bulk {
  /** Publishes it, prints the result and answers the exit code. */
  readonly publish: (evreg: Evreg, target: Pick<Target, "location">) => Promise<number>;
  /** Closes the file in any case: there may be no target to publish to. */
  readonly close: () => void;
}

const nowMs = () => performance.now();

/** Opens the file first, so that a wrong name fails before anything else. */
export async function openBulk(options: BulkPublishOptions): Promise<Bulk> {
  const { path, checkpoint: checkpointPath, rejects } = options;
  boundHeap();
  assertDistinctPaths({ "--batch": path, "--checkpoint": checkpointPath, "--rejects": rejects });
  if (checkpointPath === undefined) {
    const input = await openInput(path);
    return {
      publish: (evreg) => {
        const publish: PublishItems = (items, how) => evreg.events.publishBatch(items, how);
        return publishBulk(evreg, { input, checkpoint: undefined, publish }, options);
      },
      close: () => void input.stream.destroy(),
    };
  }
  const source = new BulkSource(path);
  return {
    publish: async (evreg, { location: target }) => {
      const { data_id: dataId } = (await evreg.whoami()).data;
      const checkpoint = await Checkpoint.open({ path: checkpointPath, source, dataId, target, nowMs });
      const input = await openInput(path, checkpoint.state.settledBytes);
      // A server that was away may come back with other data, without what the checkpoint counts.
      const publish: PublishItems = (items, how) =>
        evreg.events.publishBatch(items, { ...how, data_id: dataId });
      return publishBulk(evreg, { input, checkpoint, publish }, options);
    },
    close: () => source.close(),
  };
}

async function publishBulk(evreg: Evreg, opened: OpenedBulk, options: BulkPublishOptions): Promise<number> {
  const { input, checkpoint } = opened;
  const from = checkpoint?.state ?? NOTHING_SETTLED;
  const { settledLine: after } = from;
  const rejects = options.rejects === undefined ? undefined : new RejectFile(options.rejects, after > 0);
  if (after > 0 && from.settledBytes !== input.size) {
    const line = after.toLocaleString("en");
    note(escapeControl(`Continuing after line ${line} of ${options.path}, by ${options.checkpoint}.`));
  }
  const outcome = await runBulk(opened, from, rejects, options);
  if (options.output.format === "table") {
    await noteUndelivered(evreg, "Deliveries", async () => {
      if (outcome.accepted === 0) return false;
      const pending = await evreg.deliveries.list({ status: "pending", limit: 1 }).catch(() => undefined);
      return (pending?.data.length ?? 0) > 0;
    });
  }
  return report(outcome, after, options);
}

async function runBulk(
  { input, checkpoint, publish }: OpenedBulk,
  from: BulkState,
  rejects: RejectFile | undefined,
  { path, atomic, concurrency, onError, output, rejects: rejectsPath }: BulkPublishOptions,
): Promise<BulkOutcome> {
  const { stream, size } = input;
  const signal = interruption();
  const over = new AbortController();
  addAbortSignal(AbortSignal.any([signal, over.signal]), stream);
  const progress = await bulkProgress(size, nowMs);
  const { log } = progress;
  let refused = 0;
  const warnedOf = new Set<string>();
  const publishWithNotes: PublishItems = async (items, how) => {
    const result = await publish(items, how);
    for (const deprecation of result.meta.deprecated ?? []) {
      if (!warnedOf.has(deprecation.action)) log(deprecationNote(deprecation));
      warnedOf.add(deprecation.action);
    }
    return result;
  };
  const sleepMs = (delayMs: number) => sleep(delayMs, undefined, { signal });
  const after = { number: from.settledLine, endsAt: from.settledBytes };
  const bulk: BulkOptions = {
    lines: readLines(chunksOf(stream, path), MAX_LINE_BYTES, after),
    publish: withRetry(publishWithNotes, { signal, nowMs, sleep: sleepMs, log }),
    concurrency,
    keyOf: checkpoint?.keyOf,
    onError,
    signal,
    stopReading: () => over.abort(),
    accepted: output.format === "jsonl" ? (published) => output.lines(published) : undefined,
    refused: (line, error) => {
      rejects?.add(line, error);
      const { number } = line;
      if (output.format !== "table") log(escapeControlInJson(encodeJson({ line: number, ...error })));
      else if (refused < MAX_SHOWN) log(refusalText(number, error));
      refused += 1;
    },
    settled: (state) => {
      checkpoint?.note(state, rejects);
      progress.update(state);
    },
  };
  try {
    const outcome = await (atomic ? publishAllOrNothing(bulk) : publishLines(bulk, from));
    try {
      rejects?.sync();
      checkpoint?.save(rejects);
    } catch (error) {
      // Only the first error is reported. The checkpoint before stays, and lines after it are sent again with their keys.
      if (outcome.end !== "failed") throw error;
    }
    return outcome;
  } finally {
    progress.stop();
    stream.destroy();
    rejects?.close();
    if (output.format === "table" && refused > MAX_SHOWN) {
      const how = rejectsPath === undefined ? "--output jsonl shows" : `${rejectsPath} holds`;
      note(escapeControl(`${counted(refused - MAX_SHOWN, "more line")} refused; ${how} each refused line.`));
    }
  }
}

/** Prints the counts and what to do next, and answers the exit code. @param after the line behind which it began */
async function report(outcome: BulkOutcome, after: number, options: BulkPublishOptions): Promise<number> {
  const { atomic, output } = options;
  const { end, accepted, refused, replayed } = outcome;
  if (output.format === "json") {
    // As a batch's answer has them; `published` are the new ones among the accepted.
    const meta = { accepted, published: accepted - replayed, rejected: refused, replayed };
    await output.document({ meta });
  }
  if (output.format === "table" || end !== "all") note(escapeControl(summary(outcome, options, after)));
  if (end === "failed") throw outcome.failure;
  if (end === "interrupted") return EXIT.interrupted;
  if (refused === 0) return EXIT.done;
  return atomic ? EXIT.failed : EXIT.someFailed;
}

/** Refused lines that are shown to a person: a file of a million of them must not fill the screen. */
const MAX_SHOWN = 20;

/** A refused line for a person. */
function refusalText(number: number, { error, details }: ErrorBody): string {
  const wrong = wrongValue(error, details);
  const why = escapeControl(error);
  return `Line ${number}: ${wrong === undefined ? why : `${why.replace(/\.$/, "")}: ${wrong}`}`;
}
