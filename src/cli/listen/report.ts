import { styleText } from "node:util";
import { ATTEMPT_ERROR_WORDS } from "../../domain/words/attempts.ts";
import type { FinishedPull, PulledDelivery } from "../../domain/pull.ts";
import { RawJson } from "../../json/raw-json.ts";
import { type Output, terminalWidth, writeOut } from "../io/output.ts";
import { escapeControl, escapeControlInJson, pad, truncate } from "../io/text.ts";
import { payloadOf } from "./execute.ts";
import type { LocalResult } from "./forward.ts";

const WIDTH = 80;
const TIME_WIDTH = 8;
const ID_WIDTH = 6;
const DURATION_WIDTH = 7;
const ACTION_WIDTH = 20;

/** One event, and what became of it. */
export interface Reported {
  readonly delivery: PulledDelivery;
  readonly result: LocalResult;
  /** `undefined` for one that was only sent again here. */
  readonly finished?: FinishedPull;
}

/** Writes a line for each event: for people fitting the terminal, for programs as JSON. */
export class ListenReport {
  readonly #output: Output;
  readonly #showsPayload: boolean;
  readonly #nowMs: () => number;

  constructor(output: Output, showsPayload: boolean, nowMs: () => number) {
    this.#output = output;
    this.#showsPayload = showsPayload;
    this.#nowMs = nowMs;
  }

  async event(reported: Reported): Promise<void> {
    const { delivery } = reported;
    if (this.#output.format !== "table") return this.#output.lines([recordOf(reported, this.#nowMs())]);
    const lines = [eventLine(reported, this.#nowMs(), terminalWidth() ?? WIDTH)];
    if (this.#showsPayload)
      lines.push(escapeControlInJson(Buffer.from(payloadOf(delivery)).toString("utf8")));
    await writeOut(`${lines.join("\n")}\n`);
  }
}

/** `12:03:11  order.created         #72        12 ms  204`, and what follows from a failure. */
export function eventLine({ delivery, result, finished }: Reported, nowMs: number, width: number): string {
  const time = new Date(nowMs).toTimeString().slice(0, TIME_WIDTH);
  const head = [
    time,
    pad(truncate(escapeControl(delivery.action), ACTION_WIDTH), ACTION_WIDTH, "left"),
    pad(`#${delivery.event_id}`, ID_WIDTH, "left"),
  ].join("  ");
  const duration = pad(`${result.durationMs} ms`, DURATION_WIDTH, "right");
  const rest = `${answerOf(result)}${followsOf(finished)}${delivery.attempt > 1 ? `, attempt ${delivery.attempt}` : ""}`;
  const room = Math.max(8, width - head.length - duration.length - 4);
  const shown = truncate(escapeControl(rest), room);
  return `${head}  ${duration}  ${styleText(colorOf(result, finished), shown, { stream: process.stdout })}`;
}

function answerOf({ isDelivered, status, errorCode, reason }: LocalResult): string {
  if (status !== undefined) return String(status);
  if (isDelivered) return "done";
  return errorCode === undefined || errorCode === "consumer_failed"
    ? (reason ?? "failed")
    : ATTEMPT_ERROR_WORDS[errorCode];
}

function followsOf(finished: FinishedPull | undefined): string {
  if (finished === undefined) return " (sent again here)";
  if (finished.outcome === "fenced") return " (too late: it is sent again)";
  if (finished.status === "waiting" || finished.status === "pending") return ", retried";
  return finished.status === "failed" ? ", given up" : "";
}

function colorOf(
  { isDelivered }: LocalResult,
  finished: FinishedPull | undefined,
): "green" | "yellow" | "red" {
  if (isDelivered) return finished?.outcome === "fenced" ? "yellow" : "green";
  return finished?.status === "failed" ? "red" : "yellow";
}

function recordOf({ delivery, result, finished }: Reported, nowMs: number): object {
  const { action, event_id, delivery_id, attempt } = delivery;
  const { isDelivered, status, errorCode, reason, durationMs } = result;
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
    stored: finished?.outcome === "stored",
    delivery_status: finished?.status ?? null,
    payload: new RawJson(payloadOf(delivery)),
  };
}
