import { ATTEMPT_ERROR_WORDS } from "../../domain/words/attempts.ts";
import type { FinishedPull, PulledDelivery } from "../../domain/pull.ts";
import { RawJson } from "../../json/raw-json.ts";
import { type Color, GrowingColumns } from "../io/growing-columns.ts";
import { type Output, terminalWidth, writeOut } from "../io/output.ts";
import { escapeControlInJson } from "../io/text.ts";
import { payloadOf } from "./execute.ts";
import type { LocalResult } from "./forward.ts";

const ACTION_WIDTH = 20;

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
  const line = eventLines(terminalWidth());
  return async (reported) => {
    if (output.format !== "table") return output.lines([recordOf(reported, nowMs())]);
    const payload = showsPayload ? Buffer.from(payloadOf(reported.delivery)).toString("utf8") : "";
    await writeOut(line(reported, nowMs()) + (showsPayload ? `${escapeControlInJson(payload)}\n` : ""));
  };
}

/** `12:03:11  order.created  #72  12 ms  204`, and what follows from a failure. */
export function eventLines(width: number | undefined): (reported: Reported, nowMs: number) => string {
  const columns = new GrowingColumns([Infinity, ACTION_WIDTH, Infinity, Infinity], width);
  return ({ delivery, result, durationMs, finished }, nowMs) => {
    const { action, event_id: event, attempt } = delivery;
    const again = attempt > 1 ? `, attempt ${attempt}` : "";
    return columns.line([
      // The time of the clock on the wall here.
      { text: new Date(nowMs).toTimeString().replace(/ .*$/, "") },
      { text: action },
      { text: `#${event}` },
      { text: `${durationMs} ms` },
      { text: `${answerOf(result)}${followsOf(finished)}${again}`, color: colorOf(result, finished) },
    ]);
  };
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
