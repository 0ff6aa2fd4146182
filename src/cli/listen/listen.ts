import { consume, type ConsumedDelivery } from "../../client/consume.ts";
import type { EvregError } from "../../domain/error.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { note, type Output, terminalWidth, writeOut } from "../io/output.ts";
import { escapeControl, escapeControlInJson } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import { type LocalAttempt, type LocalResult, payloadOf } from "./attempts.ts";
import { listenerName } from "./subscriptions.ts";
import { ATTEMPT_ERROR_WORDS } from "../../domain/words/attempts.ts";
import type { FinishedPull, PulledDelivery } from "../../domain/pull.ts";
import { RawJson } from "../../json/raw-json.ts";
import { type Cell, type Color, streamLine } from "../io/table.ts";

export interface ListenOptions {
  readonly attempt: LocalAttempt;
  readonly report: ListenReport;
  /** Ends it: what is under way is waited for, but no longer than the grace, and then goes back. */
  readonly signal: AbortSignal;
  readonly graceMs: number;
}

/** Short, so that what a listener had that was killed comes again soon. */
const LEASE_MS = 15_000;
/** Events under way at a time, of one subscription. */
const CONCURRENCY = 4;

const UNAUTHORIZED = 401;

/** Takes the deliveries of the subscriptions and hands them to something here, until it is ended. */
export async function listen(
  evreg: Evreg,
  subscriptions: readonly Subscription[],
  { attempt, report, signal, graceMs }: ListenOptions,
): Promise<void> {
  const ending = new AbortController();
  /** Aborted when what is still under way goes back. */
  const grace = new AbortController();
  let graceTimer: NodeJS.Timeout | undefined;
  const end = (): void => {
    graceTimer ??= setTimeout(() => grace.abort(), graceMs);
    ending.abort();
  };
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  let failure: unknown;
  const connection = connectionNotes();
  const notes = new Set<string>();
  const noteOnce = (text: string): void => {
    if (!notes.has(text)) note(text);
    notes.add(text);
  };

  const handle = async (delivery: ConsumedDelivery, subscription: Subscription): Promise<void> => {
    const startedMs = performance.now();
    const result = await attempt(delivery, grace.signal);
    const durationMs = Math.round(performance.now() - startedMs);
    if (ending.signal.aborted && result.isCut === true) {
      await delivery.release();
      return;
    }
    const { status, errorCode, reason = "" } = result;
    const answer = status === undefined ? {} : { status };
    const finished = result.isDelivered
      ? await delivery.done({ ...answer, ...(reason === "" ? {} : { reason }) })
      : await delivery.fail(reason, { ...answer, ...(errorCode === undefined ? {} : { errorCode }) });
    connection.answered();
    if (status === UNAUTHORIZED) noteOnce(OTHER_SECRET);
    await report({ delivery, result, durationMs, finished });
    if (finished.status === "failed") noteOnce(givenUpText(subscription));
  };

  const take = async (subscription: Subscription): Promise<void> => {
    const running = new Set<Promise<void>>();
    const options = {
      concurrency: CONCURRENCY,
      leaseMs: LEASE_MS,
      consumer: listenerName(),
      signal: ending.signal,
      disconnected: connection.lost,
    };
    for await (const delivery of consume(evreg, subscription.rowid, options)) {
      const work = handle(delivery, subscription);
      running.add(work);
      void work.then(
        () => running.delete(work),
        (error: unknown) => {
          failure ??= error;
          // The consumer waits for each delivery that it handed out, so none stays without a result.
          void delivery.release();
          end();
        },
      );
    }
    await Promise.allSettled(running);
  };
  try {
    await Promise.all(subscriptions.map((one) => take(one).finally(end)));
  } finally {
    clearTimeout(graceTimer);
    signal.removeEventListener("abort", end);
  }
  if (failure !== undefined) throw failure;
}

/** Why a program that verifies signatures may answer 401. */
const OTHER_SECRET =
  "The program answers 401. If it verifies signatures: these are made with the secret of the listener's own subscription, which the program has to know. It was shown when the subscription was made; evreg subscriptions rotate-secret makes another.";

/** Says of what is not tried again what to type. */
function givenUpText({ rowid }: Subscription): string {
  return `What is given up is sent again with: ${nextCommand(`subscriptions replay ${rowid} --status failed`)}`;
}

/** Says once that the server is gone, and once that it is back. */
function connectionNotes() {
  let isLost = false;
  return {
    lost: (error: EvregError): void => {
      if (!isLost) note(`${escapeControl(error.message)} Trying again; nothing is lost meanwhile.`);
      isLost = true;
    },
    answered: (): void => {
      if (isLost) note("The server answers again.");
      isLost = false;
    },
  };
}

const ACTION_CELLS = 20;

/** One event, and what became of it. */
export interface Reported {
  readonly delivery: PulledDelivery;
  readonly result: LocalResult;
  readonly durationMs: number;
  readonly finished: FinishedPull;
}

export type ListenReport = (reported: Reported) => Promise<void>;

/** Writes a line for each event: for people fitting the terminal, for programs as JSON. */
export function listenReport(output: Output, showsPayload: boolean, nowMs: () => number): ListenReport {
  return async (reported) => {
    if (output.format !== "table") return output.lines([recordOf(reported, nowMs())]);
    const payload = showsPayload ? Buffer.from(payloadOf(reported.delivery)).toString("utf8") : "";
    await writeOut(
      eventLine(reported, nowMs(), terminalWidth()) +
        (showsPayload ? `${escapeControlInJson(payload)}\n` : ""),
    );
  };
}

/** `12:03:11  order.created  #72  12 ms  204`, and what follows from a failure. */
export function eventLine(
  { delivery, result, durationMs, finished }: Reported,
  nowMs: number,
  width: number | undefined,
): string {
  const { action, event_id: event, attempt } = delivery;
  const again = attempt > 1 ? `, attempt ${attempt}` : "";
  const cells: readonly Cell[] = [
    // The time of the clock on the wall here.
    { text: new Date(nowMs).toTimeString().replace(/ .*$/, "") },
    { text: action, cells: ACTION_CELLS },
    { text: `#${event}` },
    { text: `${durationMs} ms` },
    { text: `${answerOf(result)}${followsOf(finished)}${again}`, color: colorOf(result, finished) },
  ];
  return streamLine(cells, width);
}

function answerOf({ isDelivered, status, errorCode, reason }: LocalResult): string {
  if (status !== undefined) return String(status);
  if (isDelivered) return "done";
  return errorCode === undefined || errorCode === "consumer_failed"
    ? (reason ?? "failed")
    : ATTEMPT_ERROR_WORDS[errorCode];
}

function followsOf(finished: FinishedPull): string {
  if (finished.outcome === "fenced") return " (too late: it is sent again)";
  if (finished.status === "waiting" || finished.status === "pending") return ", retried";
  return finished.status === "failed" ? ", given up" : "";
}

function colorOf({ isDelivered }: LocalResult, finished: FinishedPull): Color {
  if (isDelivered) return finished.outcome === "fenced" ? "yellow" : "green";
  return finished.status === "failed" ? "red" : "yellow";
}

function recordOf({ delivery, result, durationMs, finished }: Reported, nowMs: number): object {
  const { action, event_id, delivery_id, attempt } = delivery;
  const { isDelivered, status, errorCode, reason } = result;
  return {
    time: new Date(nowMs).toISOString(),
    action,
    event_id,
    delivery_id,
    attempt,
    outcome: isDelivered ? "delivered" : "failed",
    status_code: status ?? null,
    error_code: errorCode ?? null,
    reason: isDelivered ? null : (reason ?? null),
    duration_ms: durationMs,
    stored: finished.outcome === "stored",
    delivery_status: finished.status,
    payload: new RawJson(payloadOf(delivery)),
  };
}
