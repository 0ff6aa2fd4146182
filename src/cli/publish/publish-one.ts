import { setTimeout as sleep } from "node:timers/promises";
import { type Delivery, isFinal } from "../../domain/delivery.ts";
import { asEvregError, EvregError } from "../../domain/error.ts";
import { type DeprecatedMeta, type Event, EVENT_LIMITS, type NewEvent } from "../../domain/event.ts";
import { parsePayload } from "../../domain/publish-body.ts";
import type { Evreg } from "../../evreg.ts";
import { readInput } from "../io/input.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output, writeOut } from "../io/output.ts";
import { progressBar, progressOf } from "../io/progress.ts";
import { escapeControl, someOf } from "../io/text.ts";
import type { RawJson } from "../../json/raw-json.ts";
import { deprecationNote, noteUndelivered } from "../notes.ts";
import { DELIVERIES, subscriptionOf } from "../views/deliveries.ts";
import { PUBLISHED_RECORD } from "../views/events.ts";
import { nextCommand } from "../target/next-command.ts";
import { EXIT } from "../usage-errors.ts";

interface PublishOptions {
  readonly wait: boolean;
  readonly timeoutS: number | undefined;
  readonly output: Output;
}

/** Publishes an event, and waits for its deliveries if asked to. Answers the exit code. */
export async function publishOne(evreg: Evreg, event: NewEvent, options: PublishOptions): Promise<number> {
  const { data, replayed, meta } = await evreg.events.publish(event);
  for (const deprecation of meta?.deprecated ?? []) note(deprecationNote(deprecation));
  if (replayed) note(`Nothing new was published: the idempotency key stands for event ${data.rowid}.`);
  if (options.wait) return waitAndReport(evreg, data, options);
  await printEvent(data, options.output, meta);
  if (options.output.format === "table") await noteUndelivered(evreg);
  return EXIT.done;
}

/** What comes of a text that is no object, and of the name of no file. */
const UNREAD: ReadonlySet<string> = new Set(["malformed", "invalid", "usage"]);

/**
 * The payload where one text is the object itself, the name of its file, or - for stdin. The target decides how large it
 * may be.
 */
export async function payloadFrom(argument: string): Promise<RawJson> {
  // A file whose name begins so is given as ./{…
  const isTyped = /^\s*[{["]/.test(argument);
  try {
    const bytes = isTyped ? Buffer.from(argument) : await readInput(argument);
    return parsePayload(bytes, { payloadBytes: EVENT_LIMITS.batchBytes });
  } catch (error) {
    if (!(error instanceof EvregError) || !UNREAD.has(error.code)) throw error;
    const message = `The payload cannot be read: ${error.message.replace(/\.$/, "")}. A payload is a JSON object, typed in quotes ('{"id": 1}') or read from a file.`;
    throw new EvregError(error.code, message, error.details);
  }
}

async function printEvent(
  event: Event,
  output: Output,
  meta?: DeprecatedMeta | { readonly outcome: PublishOutcome; readonly deliveries?: readonly Delivery[] },
): Promise<void> {
  return output.record(meta === undefined ? { data: event } : { data: event, meta }, PUBLISHED_RECORD);
}

/**
 * The result of waiting, for programs. After `timeout` and `interrupted` the remaining deliveries go on. `held`: the rest
 * waits for a paused subscription. `none`: there was no delivery to wait for. `unknown`: they could not be read.
 */
type PublishOutcome = "delivered" | "failed" | "held" | "timeout" | "interrupted" | "none" | "unknown";

/** Polls soon at first, then about once a second. */
const FIRST_POLL_MS = 25;
const MAX_POLL_MS = 1_000;
const POLL_BACKOFF = 1.6;
/** A shorter wait is nothing to speak of. */
const NOTED_AFTER_MS = 1_000;

/** What was read last, and why nothing is waited for any more. */
interface Waited {
  readonly deliveries: readonly Delivery[];
  readonly end: "over" | "timeout" | "interrupted";
}

async function waitAndReport(evreg: Evreg, event: Event, options: PublishOptions): Promise<number> {
  const { timeoutS = Infinity } = options;
  const signal = interruption();
  const published = `Event ${event.rowid} is published`;
  const line = await progressBar("{text}", { text: published });
  const startedMs = performance.now();
  let isNoted = false;
  const show = (deliveries: readonly Delivery[]): void => {
    // A program needs it, too: the number must not be lost with a command that is killed while it waits.
    if (!isNoted && performance.now() - startedMs >= NOTED_AFTER_MS) {
      line.log(`${published}; waiting for its deliveries.`);
      isNoted = true;
    }
    line.update(0, 1, { text: progressOf(deliveries) });
  };
  // A consumer takes its deliveries when it wants to. A token may be allowed to publish, and not to read this.
  const listed = await evreg.subscriptions.list({ action: event.action }).catch(() => undefined);
  const pulled = new Set(listed?.data.filter(({ mode }) => mode === "pull").map(({ rowid }) => rowid));
  const isAwaited = ({ status, subscription_id: id }: Delivery): boolean =>
    isFinal(status) || status === "delivering" || status === "held" || !pulled.has(id);
  const isOver = (deliveries: readonly Delivery[]): boolean =>
    deliveries.filter(isAwaited).every(({ status }) => isFinal(status) || status === "held");
  const wait = async (): Promise<Waited> => {
    for (let waitMs = FIRST_POLL_MS; ; waitMs = Math.min(MAX_POLL_MS, waitMs * POLL_BACKOFF)) {
      const { data: deliveries } = await evreg.events.deliveries(event.rowid);
      if (isOver(deliveries)) return { deliveries, end: "over" };
      const remainingMs = startedMs + timeoutS * 1_000 - performance.now();
      if (remainingMs <= 0) return { deliveries, end: "timeout" };
      show(deliveries);
      const isInterrupted = await sleep(Math.min(waitMs, remainingMs), false, { signal }).catch(() => true);
      if (isInterrupted) return { deliveries, end: "interrupted" };
    }
  };
  let waited: Waited;
  try {
    waited = await wait().finally(() => line.stop());
  } catch (error) {
    return reportUnknown(error, event, options.output);
  }
  return reportOutcome(waited, isAwaited, event, options);
}

/**
 * Deliveries that cannot be read, for example with a token that may only publish, are no failure of the publish: a script
 * that saw one would publish again.
 */
async function reportUnknown(failure: unknown, event: Event, output: Output): Promise<number> {
  await printEvent(event, output, { outcome: "unknown" });
  const error = asEvregError(failure);
  if (error.code === "internal") throw error;
  // The command that is named has the token that was refused.
  const how =
    error.code === "forbidden" ? "With a token that may read, this shows them" : "Look at them later";
  const look = `${how}: ${nextCommand(`deliveries list --event ${event.rowid}`)}`;
  note(
    `Event ${event.rowid} is published, so do not publish it again; only the deliveries cannot be followed: ${escapeControl(error.message)} ${look}`,
  );
  return EXIT.failed;
}

/** A token may be allowed to publish, and not to read the subscriptions of others. */
const NO_DELIVERY_SEEN =
  "No delivery to show: the action had no active subscription, or none that this token may read.";

async function reportOutcome(
  { deliveries, end }: Waited,
  isAwaited: (delivery: Delivery) => boolean,
  event: Event,
  options: PublishOptions,
): Promise<number> {
  const { output, timeoutS } = options;
  const awaited = deliveries.filter(isAwaited);
  const outcome = end === "over" ? outcomeOf(awaited) : end;
  await printEvent(event, output, { outcome, deliveries });
  if (output.format === "table") {
    if (deliveries.length > 0) await writeOut("\n");
    await output.list({ data: deliveries }, DELIVERIES.list, NO_DELIVERY_SEEN);
    const leftOut = deliveries.filter((delivery) => !isAwaited(delivery));
    if (leftOut.length > 0) {
      note(
        `Not waited for: ${escapeControl(someOf(leftOut.map(subscriptionOf)))}. What waits there waits for a consumer.`,
      );
    }
  }
  const later = `See how it goes on: ${nextCommand(`deliveries list --event ${event.rowid}`)}`;
  switch (outcome) {
    case "none":
    case "delivered":
      return EXIT.done;
    case "interrupted":
      note(`Interrupted. Event ${event.rowid} is published all the same. ${later}`);
      return EXIT.interrupted;
    case "timeout":
      note(
        `Timed out after ${timeoutS} s (${progressOf(deliveries)}). A running server goes on with them. ${later}`,
      );
      return EXIT.failed;
    case "held": {
      const held = deliveries.find(({ status }) => status === "held");
      const resume = nextCommand(`subscriptions update ${held?.subscription_id} --active`);
      note(`The rest is held until its subscription is active again: ${resume}. ${later}`);
      return EXIT.failed;
    }
    case "failed": {
      const missed = awaited.filter((delivery) => !isSuccess(delivery));
      const id = missed[0]?.rowid;
      note(
        `Failed: ${missed.length} of ${deliveries.length} deliveries did not succeed. See why: ${nextCommand(`deliveries get ${id}`)}. Send it again: ${nextCommand(`deliveries retry ${id}`)}`,
      );
      return EXIT.failed;
    }
    default:
      return outcome satisfies never;
  }
}

function outcomeOf(awaited: readonly Delivery[]): "delivered" | "failed" | "held" | "none" {
  if (awaited.length === 0) return "none";
  if (awaited.some(({ status }) => status === "held")) return "held";
  return awaited.every(isSuccess) ? "delivered" : "failed";
}

/** A delivery that its subscription's filter excluded has ended as it should. */
function isSuccess({ status }: Delivery): boolean {
  return status === "delivered" || status === "filtered";
}
