import { setTimeout as sleep } from "node:timers/promises";
import { type Delivery, isFinal } from "../../domain/delivery.ts";
import { asEvregError, EvregError } from "../../domain/error.ts";
import { type Event, EVENT_LIMITS } from "../../domain/event.ts";
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
import { EVENTS, PUBLISHED_RECORD } from "../views/events.ts";
import { systemClock } from "../../runtime/clock.ts";
import { nextCommand, plainCommand } from "../target/next-command.ts";
import { EXIT, usageError } from "../usage-errors.ts";
import type { OwnMember } from "../own-members.ts";
import { pollDeliveries, type PollResult } from "./wait.ts";

interface PublishOptions {
  readonly action: string | undefined;
  readonly payload: string | undefined;
  readonly file: string | undefined;
  /** Given where payloads are made up from the action's schema. */
  readonly sample: SampleOptions | undefined;
  readonly key: string | undefined;
  readonly wait: boolean;
  readonly timeoutS: number | undefined;
  readonly output: Output;
}

interface SampleOptions {
  /** Any, if there is none. */
  readonly seed: number | undefined;
  /** How many events. */
  readonly count: number;
  readonly members: readonly OwnMember[];
}

/**
 * Reads the payload first, so that a folder is not held while a person is still typing it; then publishes it, or those made
 * up.
 */
export async function publishOne(options: PublishOptions): Promise<(evreg: Evreg) => Promise<number>> {
  const { action, key, sample, wait, output } = options;
  if (action === undefined)
    throw usageError("Name the action to publish, or give a file of events with --batch.");
  const ownPayload = sample === undefined ? [await givenPayload(options)] : undefined;
  return async (evreg) => {
    const payloads = ownPayload ?? (await samplesOf(evreg, action, sample!));
    const events: Event[] = [];
    for (const payload of payloads) {
      // Each of several has its own.
      const idempotency_key =
        payloads.length === 1 || key === undefined ? key : `${key}-${events.length + 1}`;
      const event = { action, payload, ...(idempotency_key === undefined ? {} : { idempotency_key }) };
      const { data, replayed, deprecation } = await evreg.events.publish(event).catch((error: unknown) => {
        if (events.length > 0) note(`Published before it failed: ${events.length} of ${payloads.length}.`);
        throw error;
      });
      if (deprecation !== undefined && events.length === 0) note(deprecationNote(deprecation));
      if (replayed) note(`Nothing new was published: the idempotency key stands for event ${data.rowid}.`);
      events.push(data);
    }
    if (wait) return waitAndReport(evreg, events, options);
    await printEvents(events, options);
    if (output.format === "table") {
      const last = events.at(-1)!.rowid;
      await noteUndelivered(evreg, events.length === 1 ? "Its deliveries" : "Their deliveries", async () => {
        const deliveries = await evreg.events.deliveries(last).catch(() => undefined);
        return deliveries?.data.some(({ status }) => !isFinal(status) && status !== "held") === true;
      });
    }
    return EXIT.done;
  };
}

/** Makes up as many payloads as are wanted from the action's schema. */
export async function samplesOf(
  evreg: Evreg,
  action: string,
  { seed, count, members }: SampleOptions,
): Promise<readonly RawJson[]> {
  const { data } = await evreg.actions.get(action);
  const { anySeed, samplePayloads } = await import("../sample-payload.ts");
  return samplePayloads(data, seed ?? anySeed(), count, members);
}

/** The payload as it was typed, or from its file. The target decides how large it may be. */
async function givenPayload({ payload, file }: Pick<PublishOptions, "payload" | "file">): Promise<RawJson> {
  if (payload !== undefined && file !== undefined)
    throw usageError("Give the payload as an argument or by --file, not both.");
  const path = payload === undefined || payload === "-" ? (payload ?? file) : undefined;
  const typed = path === undefined ? payload : undefined;
  if (path === undefined && typed === undefined)
    throw usageError(
      `Give the payload: as an argument, by --file FILE, or - to read it from stdin. One is made up by ${plainCommand("trigger")}.`,
    );
  const bytes = path === undefined ? Buffer.from(typed!) : await readInput(path);
  try {
    return parsePayload(bytes, { payloadBytes: EVENT_LIMITS.batchBytes });
  } catch (error) {
    const isForm = error instanceof EvregError && (error.code === "malformed" || error.code === "invalid");
    if (!isForm) throw error;
    const message = `The payload cannot be read: ${error.message.replace(/\.$/, "")}. A payload is a JSON object, typed in quotes ('{"id": 1}') or read from a file with --file FILE.`;
    throw new EvregError(error.code, message, error.details);
  }
}

/** The payload where one argument is the object itself, the name of its file, or - for stdin. */
export function payloadFrom(argument: string): Promise<RawJson> {
  const isTyped = argument === "-" || argument.trimStart().startsWith("{");
  return givenPayload(
    isTyped ? { payload: argument, file: undefined } : { payload: undefined, file: argument },
  );
}

/** A payload that was made up is shown, one that was just typed is not. */
async function printEvents(
  events: readonly Event[],
  { sample, output }: PublishOptions,
  meta?: object,
): Promise<void> {
  const extra = meta === undefined || output.format === "table" ? {} : { meta };
  const [only] = events;
  if (events.length > 1) return output.list({ data: events, ...extra }, EVENTS.list, "");
  return output.record({ data: only!, ...extra }, sample === undefined ? PUBLISHED_RECORD : EVENTS.record);
}

/** A shorter wait is nothing to speak of. */
const NOTED_AFTER_MS = 1_000;

async function waitAndReport(
  evreg: Evreg,
  events: readonly Event[],
  options: PublishOptions,
): Promise<number> {
  const { timeoutS } = options;
  const signal = interruption();
  const line = await progressBar("{text}", { text: publishedText(events) });
  const startedMs = systemClock.monotonicMs();
  const elapsedMs = () => systemClock.monotonicMs() - startedMs;
  // A consumer takes its deliveries when it wants to. A token may be allowed to publish, and not to read this.
  const listed = await evreg.subscriptions.list({ action: events[0]!.action }).catch(() => undefined);
  const pulled = new Set(listed?.data.filter(({ mode }) => mode === "pull").map(({ rowid }) => rowid));
  let polled: PollResult;
  let isNoted = false;
  const read = async () => {
    const deliveries = [];
    for (const { rowid } of events) deliveries.push(...(await evreg.events.deliveries(rowid)).data);
    return deliveries;
  };
  try {
    polled = await pollDeliveries(read, {
      signal,
      timeoutMs: timeoutS === undefined ? undefined : timeoutS * 1_000,
      nowMs: () => systemClock.monotonicMs(),
      sleep: (delayMs) => sleep(delayMs, undefined, { signal }),
      isAwaited: ({ subscription_id: id, status }) =>
        status === "delivering" || status === "held" || !pulled.has(id),
      waiting: (deliveries) => {
        // A program needs it, too: the number must not be lost with a command that is killed while it waits.
        if (!isNoted && elapsedMs() >= NOTED_AFTER_MS) {
          line.log(
            `${publishedText(events)}; waiting for ${events.length === 1 ? "its" : "their"} deliveries.`,
          );
          isNoted = true;
        }
        line.update(0, 1, { text: progressOf(deliveries) });
      },
    }).finally(() => line.stop());
  } catch (error) {
    return reportUnknown(error, events, options);
  }
  return reportOutcome(polled, events, options);
}

/**
 * Deliveries that cannot be read, for example with a token that may only publish, are no failure of the publish: a script
 * that saw one would publish again.
 */
async function reportUnknown(
  failure: unknown,
  events: readonly Event[],
  options: PublishOptions,
): Promise<number> {
  await printEvents(events, options, { outcome: "unknown" satisfies PublishOutcome });
  const error = asEvregError(failure);
  if (error.code === "internal") throw error;
  const [{ rowid } = { rowid: 0 }] = events;
  const look = `Look at them later: ${nextCommand(`events deliveries ${rowid}`)}`;
  note(
    `${publishedText(events)}, so do not publish ${events.length === 1 ? "it" : "them"} again; only the deliveries cannot be followed: ${escapeControl(error.message)} ${look}`,
  );
  return EXIT.failed;
}

/** `Event 7 is published`, `Events 7 to 9 are published` */
function publishedText(events: readonly Event[]): string {
  const [first, last] = [events[0]!.rowid, events.at(-1)!.rowid];
  return events.length === 1 ? `Event ${first} is published` : `Events ${first} to ${last} are published`;
}

/** A token may be allowed to publish, and not to read the subscriptions of others. */
const NO_DELIVERY_SEEN =
  "No delivery to show: the action had no active subscription, or none that this token may read.";

async function reportOutcome(
  polled: PollResult,
  events: readonly Event[],
  options: PublishOptions,
): Promise<number> {
  const { deliveries, leftOut } = polled;
  const { output, timeoutS } = options;
  const outcome = outcomeOf(polled);
  const [event] = events;
  await printEvents(events, options, { outcome, deliveries });
  if (output.format === "table") {
    if (deliveries.length > 0) await writeOut("\n");
    await output.list({ data: deliveries }, DELIVERIES.list, NO_DELIVERY_SEEN);
  }
  const later = `See how it goes on: ${nextCommand(`events deliveries ${event!.rowid}`)}`;
  if (leftOut.size > 0 && output.format === "table") {
    note(
      `Not waited for: ${escapeControl(someOf([...leftOut].map(subscriptionOf)))}. What waits there waits for a consumer.`,
    );
  }
  switch (outcome) {
    case "none":
    case "delivered":
      return EXIT.done;
    case "interrupted":
      note(`Interrupted. ${publishedText(events)} all the same. ${later}`);
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
      const missed = deliveries.filter((delivery) => !isSuccess(delivery) && !leftOut.has(delivery));
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

/**
 * The result of waiting, for programs. After `timeout` and `interrupted` the remaining deliveries go on. `none`: there was
 * no delivery to wait for. `unknown`: they could not be read.
 */
type PublishOutcome = KnownOutcome | "unknown";
type KnownOutcome = "delivered" | "failed" | "held" | "timeout" | "interrupted" | "none";

function outcomeOf({ deliveries, leftOut, end }: PollResult): KnownOutcome {
  if (end !== "final") return end;
  const awaited = deliveries.filter((delivery) => !leftOut.has(delivery));
  if (awaited.length === 0) return "none";
  return awaited.every(isSuccess) ? "delivered" : "failed";
}

/** A delivery that its subscription's filter excluded has ended as it should. */
function isSuccess({ status }: Delivery): boolean {
  return status === "delivered" || status === "filtered";
}
