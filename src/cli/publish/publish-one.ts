import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Delivery, isFinal } from "../../domain/delivery.ts";
import { asEvregError, EvregError } from "../../domain/error.ts";
import { type Event, EVENT_LIMITS } from "../../domain/event.ts";
import { parsePayload } from "../../domain/publish-body.ts";
import type { Evreg } from "../../evreg.ts";
import { readInput } from "../io/input.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output, writeOut } from "../io/output.ts";
import { liveLine, progressOf } from "../io/progress.ts";
import { escapeControl } from "../io/text.ts";
import type { RawJson } from "../../json/raw-json.ts";
import { blockingNotes, deprecationNote, pausedSubscriptionNotes, noteUndelivered } from "../notes.ts";
import { shortDetail } from "../report-error.ts";
import { DELIVERIES } from "../../resources/deliveries.ts";
import { EVENTS, PUBLISHED_RECORD } from "../../resources/events.ts";
import { systemClock } from "../../runtime/clock.ts";
import { commandWithOtherToken, nextCommand } from "../target/next-command.ts";
import { EXIT, usageError } from "../usage-errors.ts";
import { pollDeliveries, type PollResult } from "./wait.ts";

interface PublishOneOptions {
  readonly action: string | undefined;
  readonly payload: string | undefined;
  readonly file: string | undefined;
  /** Whether the payload is made up from the action's schema. */
  readonly sample: boolean;
  readonly seed: number | undefined;
  readonly key: string | undefined;
  readonly wait: boolean;
  readonly timeoutS: number | undefined;
  readonly output: Output;
}

/** Reads the payload first, so that a folder is not held while a person is still typing it; then publishes. */
export async function publishOne(options: PublishOneOptions): Promise<(evreg: Evreg) => Promise<number>> {
  const { action, key, output } = options;
  if (action === undefined)
    throw usageError("Name the action to publish, or give a file of events with --batch.");
  const payloadFor = await payloadSource(action, options);
  return async (evreg) => {
    const payload = await payloadFor(evreg);
    const event = key === undefined ? { action, payload } : { action, payload, idempotency_key: key };
    const { data, replayed, deprecation } = await evreg.events.publish(event);
    if (deprecation !== undefined) note(deprecationNote(deprecation));
    if (replayed) note(`Nothing new was published: the idempotency key stands for event ${data.rowid}.`);
    if (options.wait) return report(evreg, data, options);
    await output.record({ data }, eventLines(options));
    if (output.format === "table")
      await noteUndelivered(evreg, "Its deliveries", () => hasDeliveries(evreg, data));
    return EXIT.done;
  };
}

/** What answers the payload once the target is there: a payload that is made up needs its schema. */
async function payloadSource(
  action: string,
  options: PublishOneOptions,
): Promise<(evreg: Evreg) => Promise<RawJson>> {
  if (!options.sample) {
    const bytes = await payloadBytes(options);
    // How large a payload may be is for the target to say.
    const payload = payloadIn(bytes, options.payload);
    return () => Promise.resolve(payload);
  }
  if (options.payload !== undefined) throw usageError("With --sample the payload is made up; leave it out.");
  return async (evreg) => {
    const { data } = await evreg.actions.get(action);
    const { anySeed, samplePayloads } = await import("../sample-payload.ts");
    return samplePayloads(data, options.seed ?? anySeed(), 1)[0]!;
  };
}

/** @param typed the word on the command line, where the payload is that */
function payloadIn(bytes: Uint8Array, typed: string | undefined): RawJson {
  try {
    return parsePayload(bytes, { payloadBytes: EVENT_LIMITS.batchBytes });
  } catch (error) {
    const isForm = error instanceof EvregError && (error.code === "malformed" || error.code === "invalid");
    if (!isForm) throw error;
    const way = `A payload is a JSON object, typed in quotes that keep the shell from it: '{"id": 1}'`;
    if (typed === undefined || typed === "-" || typed.trimStart().startsWith("{")) {
      const message = `The payload cannot be read: ${error.message.replace(/\.$/, "")}. ${way}.`;
      throw new EvregError(error.code, message, error.details);
    }
    const file = existsSync(typed) ? `; the file of that name is given by --file ${typed}` : "";
    const message = `${JSON.stringify(shortDetail(typed))} is no payload. ${way}${file}.`;
    throw new EvregError(error.code, message, error.details);
  }
}

/** A payload that was made up is shown, one that was just typed is not. */
function eventLines({ sample }: PublishOneOptions): typeof EVENTS.record {
  return sample ? EVENTS.record : PUBLISHED_RECORD;
}

async function payloadBytes({ payload, file }: PublishOneOptions): Promise<Uint8Array> {
  if (payload !== undefined && file !== undefined)
    throw usageError("Give the payload as an argument or by --file, not both.");
  if (payload !== undefined && payload !== "-") return Buffer.from(payload);
  const path = payload ?? file;
  if (path === undefined)
    throw usageError(
      "Give the payload: as an argument, by --file FILE, - to read it from stdin, or made up with --sample.",
    );
  return readInput(path);
}

async function hasDeliveries(evreg: Evreg, { rowid }: Event): Promise<boolean> {
  const deliveries = await evreg.events.deliveries(rowid).catch(() => undefined);
  return deliveries?.data.some(({ status }) => !isFinal(status) && status !== "held") === true;
}

/** A token may be allowed to publish, and not to read the subscriptions of others. */
const NO_DELIVERY_SEEN =
  "No delivery to be seen: the action had no active subscription, or none that this token may read.";

async function report(evreg: Evreg, event: Event, options: PublishOneOptions): Promise<number> {
  let followed: PollResult;
  try {
    followed = await pollOutcome(evreg, event, options);
  } catch (error) {
    return reportUnknown(error, event, options);
  }
  return reportOutcome(evreg, followed, event, options);
}

/**
 * What keeps from looking at deliveries, such as a token that may only publish, is no failure of the publish: with its own
 * exit code a script would take it for one, and publish once more.
 */
async function reportUnknown(
  failure: unknown,
  event: Event,
  { output, ...options }: PublishOneOptions,
): Promise<number> {
  const outcome: PublishOutcome = "unknown";
  const meta = output.format === "table" ? {} : { meta: { outcome } };
  await output.record({ data: event, ...meta }, eventLines({ output, ...options }));
  const error = asEvregError(failure);
  if (error.code === "internal") throw error;
  const words = `events deliveries ${event.rowid}`;
  const look =
    error.code === "forbidden"
      ? `Look at them with one: ${commandWithOtherToken(words)}`
      : `Look at them later: ${nextCommand(words)}`;
  note(
    `Event ${event.rowid} is published, so do not publish it again; only its deliveries cannot be followed: ${escapeControl(error.message)} ${look}`,
  );
  return EXIT.failed;
}

async function pollOutcome(evreg: Evreg, event: Event, { timeoutS }: PublishOneOptions): Promise<PollResult> {
  const line = liveLine();
  return pollDeliveries(evreg.events, event.rowid, {
    signal: interruption(),
    timeoutMs: timeoutS === undefined ? undefined : timeoutS * 1_000,
    nowMs: () => systemClock.now(),
    sleep: (delayMs, signal) => sleep(delayMs, undefined, { signal }),
    waiting: (deliveries) => line.update(deliveries),
  }).finally(() => line.clear());
}

async function reportOutcome(
  evreg: Evreg,
  followed: PollResult,
  event: Event,
  options: PublishOneOptions,
): Promise<number> {
  const { deliveries } = followed;
  const { output } = options;
  if (output.format === "table") {
    await output.record({ data: event }, eventLines(options));
    if (deliveries.length > 0) await writeOut("\n");
    await output.list({ data: deliveries }, DELIVERIES.list, NO_DELIVERY_SEEN);
  } else {
    await output.record(
      { data: event, meta: { outcome: outcomeOf(followed), deliveries } },
      eventLines(options),
    );
  }
  if (deliveries.length === 0)
    for (const text of await pausedSubscriptionNotes(evreg, event.action)) note(text);
  const blocks = followed.end === "timeout" ? await blockingNotes(evreg, deliveries) : [];
  return verdict(followed, event.rowid, { timeoutS: options.timeoutS, blocks });
}

/**
 * What waiting has shown, for programs: `timeout` and `interrupted` say nothing about the deliveries that were left, which
 * go on. `none`: there was no delivery to wait for. `unknown`: they could not be looked at.
 */
type PublishOutcome = KnownOutcome | "unknown";
type KnownOutcome = "delivered" | "failed" | "held" | "timeout" | "interrupted" | "none";

function outcomeOf({ deliveries, end }: PollResult): KnownOutcome {
  if (end !== "final") return end;
  if (deliveries.length === 0) return "none";
  return deliveries.every(isSuccess) ? "delivered" : "failed";
}

/** What was waited by, and what is known of deliveries that wait behind another. */
interface Waited {
  readonly timeoutS: number | undefined;
  /** Sentences. */
  readonly blocks: readonly string[];
}

/** Says what the person should know of it, and answers the exit code. */
function verdict(followed: PollResult, eventId: number, { timeoutS, blocks }: Waited): number {
  const { deliveries } = followed;
  const later = `See how it goes on: ${nextCommand(`events deliveries ${eventId}`)}`;
  const outcome = outcomeOf(followed);
  switch (outcome) {
    case "delivered":
    case "none":
      return EXIT.done;
    case "interrupted":
      note(`Interrupted; event ${eventId} is published all the same. ${later}`);
      return EXIT.interrupted;
    case "timeout": {
      const rest = blocks.length > 0 ? blocks.join(" ") : "What is left goes on while a server runs.";
      note(
        `Timed out after ${timeoutS} s: not every delivery came to its end (${progressOf(deliveries)}). ${rest} ${later}`,
      );
      return EXIT.failed;
    }
    case "held":
      note(
        `The rest is held until its subscription is active again: ${nextCommand(`subscriptions update ${deliveries.find(({ status }) => status === "held")?.subscription_id} --active`)}. ${later}`,
      );
      return EXIT.failed;
    case "failed": {
      const missed = deliveries.filter((delivery) => !isSuccess(delivery));
      note(
        `Failed: ${missed.length} of ${deliveries.length} deliveries came to an end without success. See why: ${nextCommand(`deliveries get ${missed[0]?.rowid}`)}. Send it again: ${nextCommand(`deliveries retry ${missed[0]?.rowid}`)}`,
      );
      return EXIT.failed;
    }
    default:
      return outcome satisfies never;
  }
}

/** A delivery that its subscription's filter stopped has ended as it should. */
function isSuccess({ status }: Delivery): boolean {
  return status === "delivered" || status === "filtered";
}
