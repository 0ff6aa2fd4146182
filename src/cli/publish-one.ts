import { setTimeout as sleep } from "node:timers/promises";
import { type Delivery, isFinal } from "../domain/delivery.ts";
import type { Event } from "../domain/event.ts";
import { EVENT_LIMITS } from "../domain/event.ts";
import { parsePayload } from "../domain/publish-body.ts";
import type { Evreg } from "../evreg.ts";
import { systemClock } from "../runtime/clock.ts";
import { DELIVERY_LIST, PUBLISHED_RECORD } from "./columns.ts";
import { EXIT } from "./exit-code.ts";
import { followLine, progressOf } from "./follow-line.ts";
import { followDeliveries, type Followed } from "./follow.ts";
import { readInput } from "./input.ts";
import { interruption } from "./interruption.ts";
import { note, writeOut, type Output } from "./output.ts";
import { tellWhenWaiting } from "./tell-when-waiting.ts";
import { usage } from "./usage.ts";

export interface PublishOne {
  readonly action: string | undefined;
  readonly payload: string | undefined;
  readonly file: string | undefined;
  readonly key: string | undefined;
  readonly wait: boolean;
  readonly timeoutS: number | undefined;
  readonly output: Output;
}

/** Reads the payload first, so that a folder is not held while a person is still typing it; then publishes. */
export async function publishOne(options: PublishOne): Promise<(evreg: Evreg) => Promise<number>> {
  const { action, key, output } = options;
  if (action === undefined) throw usage("Name the action to publish, or give a file of events with --batch.");
  const bytes = await payloadBytes(options);
  // How large a payload may be is for the target to say.
  const payload = parsePayload(bytes, { payloadBytes: EVENT_LIMITS.batchBytes });
  const event = key === undefined ? { action, payload } : { action, payload, idempotency_key: key };
  return async (evreg) => {
    const { data, replayed } = await evreg.events.publish(event);
    if (replayed) note(`Nothing new was published: the idempotency key stands for event ${data.rowid}.`);
    if (options.wait) return report(evreg, data, options);
    await output.record({ data }, PUBLISHED_RECORD);
    if (output.format === "table")
      await tellWhenWaiting(evreg, "Its deliveries", () => hasDeliveries(evreg, data));
    return EXIT.done;
  };
}

async function payloadBytes({ payload, file }: PublishOne): Promise<Uint8Array> {
  if (payload !== undefined && file !== undefined)
    throw usage("Give the payload as an argument or by --file, not both.");
  if (payload !== undefined && payload !== "-") return Buffer.from(payload);
  const path = payload ?? file;
  if (path === undefined)
    throw usage("Give the payload: as an argument, by --file FILE, or - to read it from stdin.");
  return readInput(path);
}

async function hasDeliveries(evreg: Evreg, { rowid }: Event): Promise<boolean> {
  const deliveries = await evreg.events.deliveries(rowid).catch(() => undefined);
  return deliveries?.data.some(({ status }) => !isFinal(status) && status !== "held") === true;
}

/** A token may be allowed to publish, and not to read the subscriptions of others. */
const NO_DELIVERY_SEEN =
  "No delivery to be seen: the action had no active subscription, or none that this token may read.";

async function report(evreg: Evreg, event: Event, options: PublishOne): Promise<number> {
  const followed = await follow(evreg, event, options).catch(async (error: unknown) => {
    // Whoever is not told would publish it once more.
    await options.output.record({ data: event }, PUBLISHED_RECORD);
    note(
      `Event ${event.rowid} is published; only its deliveries cannot be followed. Look at them later: evreg events deliveries ${event.rowid}`,
    );
    throw error;
  });
  return show(followed, event, options);
}

async function follow(evreg: Evreg, event: Event, { timeoutS }: PublishOne): Promise<Followed> {
  const line = followLine();
  return followDeliveries(evreg.events, event.rowid, {
    signal: interruption(),
    timeoutMs: timeoutS === undefined ? undefined : timeoutS * 1_000,
    nowMs: () => systemClock.now(),
    sleep: (delayMs, signal) => sleep(delayMs, undefined, { signal }),
    waiting: (deliveries) => line.update(deliveries),
  }).finally(() => line.clear());
}

async function show(followed: Followed, event: Event, { output, timeoutS }: PublishOne): Promise<number> {
  const { deliveries } = followed;
  if (output.format === "table") {
    await output.record({ data: event }, PUBLISHED_RECORD);
    if (deliveries.length > 0) await writeOut("\n");
    await output.list({ data: deliveries }, DELIVERY_LIST, NO_DELIVERY_SEEN);
  } else {
    await output.record(
      { data: event, meta: { outcome: outcomeOf(followed), deliveries } },
      PUBLISHED_RECORD,
    );
  }
  return verdict(followed, event.rowid, timeoutS);
}

/**
 * What waiting has shown, for programs: `timeout` and `interrupted` say nothing about the deliveries that were left, which
 * go on. `none`: there was no delivery to wait for.
 */
type Outcome = "delivered" | "failed" | "held" | "timeout" | "interrupted" | "none";

function outcomeOf({ deliveries, end }: Followed): Outcome {
  if (end !== "final") return end;
  if (deliveries.length === 0) return "none";
  return deliveries.every(isWell) ? "delivered" : "failed";
}

function verdict(followed: Followed, eventId: number, timeoutS: number | undefined): number {
  const { deliveries } = followed;
  const later = `See how it goes on: evreg events deliveries ${eventId}`;
  const outcome = outcomeOf(followed);
  switch (outcome) {
    case "delivered":
    case "none":
      return EXIT.done;
    case "interrupted":
      note(`Interrupted; event ${eventId} is published all the same. ${later}`);
      return EXIT.interrupted;
    case "timeout":
      note(
        `Timed out after ${timeoutS} s: not every delivery came to its end (${progressOf(deliveries)}). What is left goes on while a server runs. ${later}`,
      );
      return EXIT.failed;
    case "held":
      note(
        `The rest is held until its subscription is active again: evreg subscriptions update ${heldBy(deliveries)} --active. ${later}`,
      );
      return EXIT.failed;
    case "failed": {
      const missed = deliveries.filter((delivery) => !isWell(delivery));
      note(
        `Failed: ${missed.length} of ${deliveries.length} deliveries came to an end without success. See why: evreg deliveries get ${missed[0]?.rowid}. Send it again: evreg deliveries retry ${missed[0]?.rowid}`,
      );
      return EXIT.failed;
    }
    default:
      return outcome satisfies never;
  }
}

/** One that its subscription's filter kept back is where it should be. */
function isWell({ status }: Delivery): boolean {
  return status === "delivered" || status === "filtered";
}

function heldBy(deliveries: readonly Delivery[]): number | undefined {
  return deliveries.find(({ status }) => status === "held")?.subscription_id;
}
