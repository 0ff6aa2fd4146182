import { addAbortSignal } from "node:stream";
import { EvregError, type ErrorBody } from "../domain/error.ts";
import type { EventsPort, Evreg } from "../evreg.ts";
import { encodeJson } from "../json/encode.ts";
import { bulkProgress } from "./bulk-progress.ts";
import { publishAllOrNothing } from "./bulk-atomic.ts";
import { MAX_LINE_BYTES } from "./bulk-line.ts";
import { publishLines, type BulkOptions, type BulkOutcome } from "./bulk-publisher.ts";
import { deprecationNote } from "./deprecation-note.ts";
import { EXIT } from "./exit-code.ts";
import { chunksOf, openInput, type Input } from "./input.ts";
import { interruption } from "./interruption.ts";
import { readLines } from "./ndjson.ts";
import { nextCommand } from "./next-command.ts";
import { note, type Output } from "./output.ts";
import { printableJson, printableLine } from "./printable.ts";
import { RefusalTally } from "./refusal-tally.ts";
import { tellWhenWaiting } from "./tell-when-waiting.ts";

export interface PublishBulk {
  /** Of the NDJSON file; `-` is stdin. */
  readonly path: string;
  readonly atomic: boolean;
  readonly onError: "continue" | "stop";
  readonly output: Output;
}

/** Opens the file first, so that a wrong name is told before anything else; then publishes it and tells how far it came. */
export async function publishBulk(options: PublishBulk): Promise<(evreg: Evreg) => Promise<number>> {
  const input = await openInput(options.path);
  return async (evreg) => {
    const { accepted, code } = await publishInput(evreg.events, input, options);
    if (options.output.format === "table") {
      await tellWhenWaiting(evreg, "Deliveries", async () => accepted > 0 && (await hasPending(evreg)));
    }
    return code;
  };
}

async function hasPending(evreg: Evreg): Promise<boolean> {
  const pending = await evreg.deliveries.list({ status: "pending", limit: 1 }).catch(() => undefined);
  return (pending?.data.length ?? 0) > 0;
}

async function publishInput(
  events: EventsPort,
  input: Input,
  options: PublishBulk,
): Promise<{ accepted: number; code: number }> {
  const { path, atomic, onError, output } = options;
  const signal = interruption();
  const { stream, size } = input;
  addAbortSignal(signal, stream);
  const progress = await bulkProgress(size);
  const tally = new RefusalTally();
  const toldOf = new Set<string>();
  const bulk: BulkOptions = {
    lines: readLines(chunksOf(stream, path), MAX_LINE_BYTES),
    async publish(items, how) {
      const result = await events.publishBatch(items, how);
      for (const deprecation of result.meta.deprecated ?? []) {
        if (!toldOf.has(deprecation.action)) progress.tell(deprecationNote(deprecation));
        toldOf.add(deprecation.action);
      }
      return result;
    },
    onError,
    signal,
    accepted: (published) => (output.format === "jsonl" ? output.lines(published) : undefined),
    refused: ({ number }, error) => {
      if (output.format !== "table") progress.tell(refusalRecord(number, error));
      else if (tally.add(number, error.error)) progress.tell(`Line ${number}: ${printableLine(error.error)}`);
    },
    progress: (state) => progress.update(state),
  };
  let outcome: BulkOutcome;
  try {
    outcome = await (atomic ? publishAllOrNothing(bulk) : publishLines(bulk));
  } finally {
    progress.stop();
    stream.destroy();
    for (const text of tally.untold()) note(printableLine(text));
  }
  return { accepted: outcome.accepted, code: await report(outcome, options) };
}

async function report(outcome: BulkOutcome, { path, atomic, output }: PublishBulk): Promise<number> {
  const { accepted, replayed, refused, end } = outcome;
  if (output.format === "json") await output.document({ meta: { accepted, rejected: refused, replayed } });
  if (output.format === "table" || end !== "all") note(summary(outcome, path));
  if (end === "failed") throw outcome.failure;
  if (end === "interrupted") return EXIT.interrupted;
  if (refused === 0) return EXIT.done;
  return atomic ? EXIT.failed : EXIT.someFailed;
}

/** A refused line for a program: the API's error with the line's number. */
function refusalRecord(number: number, error: ErrorBody): string {
  return printableJson(encodeJson({ line: number, ...error }));
}

function summary(outcome: BulkOutcome, path: string): string {
  const { accepted, replayed, refused, end, settledLine, ...rest } = outcome;
  const there = replayed === 0 ? "" : `, ${replayed.toLocaleString("en")} already there`;
  const counts = `${many(accepted - replayed, "event")} published${there}, ${many(refused, "line")} refused.`;
  if (end === "all") return refused === 0 ? counts : `${counts} Mend those and publish them by themselves.`;
  const file = path === "-" ? "FILE" : path;
  if (end === "stopped") {
    return settledLine === 0
      ? `Nothing was published: ${many(refused, "line")} refused. Mend ${refused === 1 ? "it" : "them"} and publish all again.`
      : `${counts} Stopped at line ${settledLine}; nothing behind it was published. Mend it, then go on with: tail -n +${settledLine} ${file} | ${nextCommand("publish --batch -")}`;
  }
  const place = end === "interrupted" ? "Interrupted" : "It came to an end";
  const doubt =
    rest.doubtfulLine === undefined || !mayHaveArrived(rest.failure)
      ? ""
      : ` Whether lines ${settledLine + 1} to ${rest.doubtfulLine} were published is not known; those with an idempotency_key can be sent again without harm.`;
  const goOn =
    settledLine === 0
      ? ""
      : ` Go on with: tail -n +${settledLine + 1} ${file} | ${nextCommand("publish --batch -")}`;
  return `${counts} ${place} behind line ${settledLine}.${doubt}${goOn}`;
}

/** Before a connection stands nothing was sent, and a refusal of the whole batch says that nothing was done. */
const NEVER_SENT = new Set<unknown>([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

function mayHaveArrived(failure: unknown): boolean {
  if (!(failure instanceof EvregError)) return true;
  if (failure.code === "unreachable") return !NEVER_SENT.has(failure.details["cause"]);
  return failure.code === "unavailable" || failure.code === "internal";
}

function many(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
