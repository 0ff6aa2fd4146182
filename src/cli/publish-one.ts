import { setTimeout as sleep } from "node:timers/promises";
import { isFinal } from "../domain/delivery.ts";
import type { Event } from "../domain/event.ts";
import { EVENT_LIMITS } from "../domain/event.ts";
import { parsePayload } from "../domain/publish-body.ts";
import type { Evreg } from "../evreg.ts";
import { systemClock } from "../runtime/clock.ts";
import { DELIVERY_LIST, PUBLISHED_RECORD } from "./columns.ts";
import { deprecationNote } from "./deprecation-note.ts";
import { EXIT } from "./exit-code.ts";
import { followLine } from "./follow-line.ts";
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
    const { data, replayed, deprecation } = await evreg.events.publish(event);
    if (deprecation !== undefined) note(deprecationNote(deprecation));
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
    note(`Event ${event.rowid} is published; only its deliveries cannot be followed.`);
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

async function show(followed: Followed, event: Event, { output }: PublishOne): Promise<number> {
  const { deliveries } = followed;
  if (output.format === "table") {
    await output.record({ data: event }, PUBLISHED_RECORD);
    if (deliveries.length > 0) await writeOut("\n");
    await output.list({ data: deliveries }, DELIVERY_LIST, NO_DELIVERY_SEEN);
  } else {
    await output.record({ data: event, meta: { deliveries } }, PUBLISHED_RECORD);
  }
  return verdict(followed, event.rowid);
}

function verdict({ deliveries, end }: Followed, eventId: number): number {
  const later = `See how it goes on: evreg events deliveries ${eventId}`;
  if (end === "interrupted") {
    note(`Interrupted; event ${eventId} is published all the same. ${later}`);
    return EXIT.interrupted;
  }
  if (end === "timeout") note(`Not every delivery came to its end in time. ${later}`);
  if (end === "held") note(`The rest is held until its subscription is active again. ${later}`);
  return deliveries.every((delivery) => delivery.status === "delivered") ? EXIT.done : EXIT.failed;
}
