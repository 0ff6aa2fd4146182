import { addAbortSignal } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorBody, EvregError } from "../../domain/error.ts";
import type { Evreg } from "../../evreg.ts";
import { chunksOf, type Input, openInput } from "../io/input.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output } from "../io/output.ts";
import { escapeControlInJson, escapeControl } from "../io/text.ts";
import { encodeJson } from "../../json/raw-json.ts";
import { deprecationNote, noteUndelivered } from "../notes.ts";
import { brokenRules } from "../report-error.ts";
import type { Target } from "../target/target.ts";
import { EXIT, usageError } from "../usage-errors.ts";
import { MAX_LINE_BYTES, withRetry, type PublishItems } from "./bulk-batch.ts";
import { BulkSource, readLines } from "./bulk-input.ts";
import {
  sinceCheckpoint,
  type BulkFiles,
  bulkProgress,
  resumeNote,
  assertDistinctPaths,
  ErrorSummary,
  RejectFile,
  summary,
} from "./bulk-report.ts";
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

/** All that is open for a bulk. */
interface Opened {
  readonly input: Input;
  readonly from: BulkState;
  readonly checkpoint: Checkpoint | undefined;
  readonly rejects: RejectFile | undefined;
  readonly publish: PublishItems;
}

const nowMs = () => performance.now();

/** A bulk whose file is open. */
interface Bulk {
  /** Publishes it and prints the result. */
  readonly publish: (evreg: Evreg, target: Pick<Target, "dataKey">) => Promise<number>;
  /** To be called in any case: there may be no target to publish to. */
  readonly close: () => void;
}

/** Opens the file first, so that a wrong name fails before anything else. */
export async function openBulk(options: BulkPublishOptions): Promise<Bulk> {
  const { path, checkpoint, rejects, output } = options;
  assertDistinctPaths({ "--batch": path, "--checkpoint": checkpoint, "--rejects": rejects });
  const { open, close } = await prepare(options);
  const publish: Bulk["publish"] = async (evreg, { dataKey: place }) => {
    const opened = await open(evreg, place);
    const resumed = resumeNote(opened.from, opened.input.size, options, opened.checkpoint?.hasGrown === true);
    if (resumed !== undefined) note(escapeControl(resumed));
    const outcome = await publishOpened(opened, options);
    if (output.format === "table") {
      await noteUndelivered(
        evreg,
        "Deliveries",
        async () => outcome.accepted > 0 && (await hasPending(evreg)),
      );
    }
    return exitCode(outcome, opened.from, options);
  };
  return { publish, close };
}

async function prepare({
  path,
  checkpoint: checkpointPath,
  rejects: rejectsPath,
}: BulkPublishOptions): Promise<{
  open: (evreg: Evreg, target: string) => Promise<Opened>;
  close: () => void;
}> {
  const rejectsFrom = (bytes: number) =>
    rejectsPath === undefined ? undefined : new RejectFile(rejectsPath, bytes);
  if (checkpointPath === undefined) {
    const input = await openInput(path);
    const fresh = { input, from: NOTHING_SETTLED, checkpoint: undefined };
    const opened = (evreg: Evreg) => ({ ...fresh, rejects: rejectsFrom(0), publish: batchesOf(evreg) });
    return {
      open: (evreg) => Promise.resolve(opened(evreg)),
      close: () => void input.stream.destroy(),
    };
  }
  const source = new BulkSource(path);
  const open = async (evreg: Evreg, target: string): Promise<Opened> => {
    const dataId = await dataIdOf(evreg, target);
    const checkpoint = await Checkpoint.open({ path: checkpointPath, source, dataId, target, nowMs });
    const { state: from, rejectsBytes } = checkpoint;
    return {
      input: await openInput(path, from.settledBytes),
      from,
      checkpoint,
      rejects: rejectsFrom(rejectsBytes),
      publish: pinDataId(dataId, batchesOf(evreg)),
    };
  };
  return { open, close: () => source.close() };
}

function batchesOf({ events }: Evreg): PublishItems {
  return (items, how) => events.publishBatch(items, how);
}

async function hasPending(evreg: Evreg): Promise<boolean> {
  const pending = await evreg.deliveries.list({ status: "pending", limit: 1 }).catch(() => undefined);
  return (pending?.data.length ?? 0) > 0;
}

async function publishOpened(opened: Opened, options: BulkPublishOptions): Promise<BulkOutcome> {
  const { path, atomic, concurrency, onError, output } = options;
  const { input, from, checkpoint, rejects, publish } = opened;
  const { stream, size } = input;
  const signal = interruption();
  const over = new AbortController();
  addAbortSignal(AbortSignal.any([signal, over.signal]), stream);
  const progress = await bulkProgress({ size, from, nowMs });
  const tally = new ErrorSummary();
  const warnedOf = new Set<string>();
  const bulk: BulkOptions = {
    lines: readLines(chunksOf(stream, path), MAX_LINE_BYTES, {
      number: from.settledLine,
      endsAt: from.settledBytes,
    }),
    publish: withRetry(
      async (items, how) => {
        const result = await publish(items, how);
        for (const deprecation of result.meta.deprecated ?? []) {
          if (!warnedOf.has(deprecation.action)) progress.log(deprecationNote(deprecation));
          warnedOf.add(deprecation.action);
        }
        return result;
      },
      {
        signal,
        nowMs,
        sleep: (delayMs) => sleep(delayMs, undefined, { signal }),
        log: (line) => progress.log(line),
      },
    ),
    concurrency,
    keyOf: checkpoint?.keyOf,
    onError,
    signal,
    stopReading: () => over.abort(),
    accepted: output.format === "jsonl" ? (published) => output.lines(published) : undefined,
    refused: (line, error) => {
      rejects?.add(line, error);
      const { number } = line;
      if (output.format !== "table") progress.log(refusalRecord(number, error));
      else if (tally.add(number, error.error)) progress.log(refusalText(number, error));
    },
    settled: (state) => {
      checkpoint?.note(state, rejects);
      progress.update(state);
    },
  };
  try {
    const outcome = await (atomic ? publishAllOrNothing(bulk) : publishLines(bulk, from));
    // The first error is the one to report; it may be the disk that the checkpoint is on.
    if (outcome.end !== "failed") {
      rejects?.sync();
      checkpoint?.save(rejects);
    } else saveIfPossible(checkpoint, rejects);
    return outcome;
  } finally {
    progress.stop();
    stream.destroy();
    rejects?.close();
    for (const text of tally.remaining(options.rejects)) note(escapeControl(text));
  }
}

function saveIfPossible(checkpoint: Checkpoint | undefined, rejects: RejectFile | undefined): void {
  try {
    checkpoint?.save(rejects);
  } catch {
    // The one before it stands, and lines behind that are sent again with their keys.
  }
}

async function exitCode(outcome: BulkOutcome, from: BulkState, options: BulkPublishOptions): Promise<number> {
  const { atomic, output } = options;
  const { end } = outcome;
  const ofThisRun = sinceCheckpoint(from, outcome);
  if (output.format === "json") {
    const before = from.settledLine === 0 ? {} : { before: { line: from.settledLine, ...countsOf(from) } };
    await output.document({ meta: { ...countsOf(ofThisRun), ...before } });
  }
  if (output.format === "table" || end !== "all") note(escapeControl(summary(outcome, options, from)));
  if (end === "failed") throw outcome.failure;
  if (end === "interrupted") return EXIT.interrupted;
  // A run before has reported its own refused lines, and they may have been corrected since.
  if (ofThisRun.refused === 0) return EXIT.done;
  return atomic ? EXIT.failed : EXIT.someFailed;
}

/** The counts of a batch's answer; `published` are the new ones among the accepted. */
function countsOf({ accepted, refused, replayed }: BulkState): Readonly<Record<string, number>> {
  return { accepted, published: accepted - replayed, rejected: refused, replayed };
}

/** Rules shown for a refused line, beside the first. */
const MAX_RULES = 3;

/** A refused line for a person. */
function refusalText(number: number, { error, details }: ErrorBody): string {
  const rules = brokenRules(details);
  const more = rules.length - MAX_RULES;
  const lines = rules.slice(0, MAX_RULES).map((rule) => `  - ${rule}`);
  if (more > 0) lines.push(`  - and ${more} more`);
  return [`Line ${number}: ${escapeControl(error)}`, ...lines].join("\n");
}

/** A refused line for a program: the API's error with the line's number. */
function refusalRecord(number: number, error: ErrorBody): string {
  return escapeControlInJson(encodeJson({ line: number, ...error }));
}

/**
 * Which data a bulk publishes to.
 * @param target the address or the data folder, for a person
 * @throws EvregError `usage` for a server that does not say; those of `whoami`
 */
async function dataIdOf(evreg: Pick<Evreg, "whoami">, target: string): Promise<string> {
  const { data_id: id } = (await evreg.whoami()).data as { data_id?: string };
  if (id !== undefined) return id;
  throw usageError(
    `--checkpoint: the server at ${target} does not tell which data it has, as one of an older evreg. Update that one, or leave --checkpoint out.`,
  );
}

/**
 * Publishes to this data only: a server that was away, or was not seen to be, may have other data since, where what the
 * checkpoint counts is not.
 * @throws EvregError also `usage` when it has
 */
export function pinDataId(dataId: string, publish: PublishItems): PublishItems {
  return (items, how) =>
    publish(items, { ...how, data_id: dataId }).catch((error: unknown) => {
      if (error instanceof EvregError && error.code === "conflict" && error.details["field"] === "data_id") {
        throw hasChanged();
      }
      throw error;
    });
}

function hasChanged(): EvregError {
  return usageError(
    "The server has other data than before: another data folder, or the one from before a restore. Nothing more was published. The same command tells how to go on.",
  );
}
