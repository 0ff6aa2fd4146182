import { EvregError } from "../../domain/error.ts";
import type { NewReplay, Replay, ReplayCount } from "../../domain/replay.ts";
import type { Evreg } from "../../evreg.ts";
import { subscriptionOf } from "../views/deliveries.ts";
import { RETRY_COUNT_LIST, REPLAYS } from "../views/replays.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output } from "../io/output.ts";
import { agreementTo } from "../io/prompts.ts";
import { counted, escapeControl } from "../io/text.ts";
import { notePaused, serverCommand } from "../notes.ts";
import { subscriptionId, type TypedSubscription } from "../subscriptions/name.ts";
import { nextCommand } from "../target/next-command.ts";
import { EXIT, usageError } from "../usage-errors.ts";
import { pollReplay, whatBecomes } from "./wait.ts";

export interface RetryMany {
  readonly status: RetryStatus;
  readonly subscription: TypedSubscription | undefined;
  readonly action: string | undefined;
  /** The time from which the events were published. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly yes: boolean;
  readonly dryRun: boolean;
  readonly wait: boolean;
  readonly output: Output;
}

/** failed: for good. waiting: for the next attempt. */
export const RETRY_STATUSES = ["failed", "waiting"] as const;
type RetryStatus = (typeof RETRY_STATUSES)[number];

/** Each takes a call to count, and perhaps one to begin. */
const MAX_SUBSCRIPTIONS = 200;
const THE_BEGINNING = "1970-01-01T00:00:00Z";

/**
 * Sends the deliveries of some subscriptions that failed or wait now, by a replay for each that has any: counts them, asks,
 * and begins.
 * Answers the exit code.
 */
export async function retryMany(evreg: Evreg, options: RetryMany): Promise<number> {
  const { status, from = THE_BEGINNING, to, yes, dryRun, wait, output } = options;
  const input: NewReplay = { status, from, ...(to === undefined ? {} : { to }) };
  const counts = await countOf(evreg, await subscriptionsOf(evreg, options), input);
  if (dryRun || counts.length === 0) {
    await output.list(
      { data: counts },
      RETRY_COUNT_LIST,
      status === "failed" ? "No delivery that failed matches." : "No delivery that waits matches.",
    );
    return EXIT.done;
  }
  const total = counts.reduce((sum, count) => sum + count.total, 0);
  const what = `${total.toLocaleString("en")} ${total === 1 ? "delivery" : "deliveries"} to ${namesOf(counts)}`;
  const when = status === "failed" ? "again" : "now";
  if (!yes) {
    const refusal = await agreementTo(
      `This sends ${what} ${when}`,
      `Send ${what} ${when}?`,
      "Nothing was sent.",
    );
    if (refusal !== undefined) return refusal;
  }
  const { begun, refused } = await begin(evreg, counts, input);
  const health = await evreg.health().catch(() => undefined);
  if (health?.data.engine === "stopped")
    note(`They are sent by the next server on this data folder: ${await serverCommand(evreg)}`);
  await notePaused(
    evreg,
    begun.map((replay) => replay.subscription_id),
  );
  const last = wait ? await follow(evreg, begun) : begun;
  await output.list({ data: last }, REPLAYS.list, "");
  for (const message of refused) note(escapeControl(message));
  const isOver = last.every((replay) => replay.status !== "running");
  if (!isOver) output.note(`It goes on in the background. Look at it: ${nextCommand("replays")}`);
  if (wait && last.some((replay) => replay.status === "done")) output.note(whatBecomes());
  if (wait && !isOver) return EXIT.interrupted;
  if (refused.length > 0) return EXIT.someFailed;
  return last.some((replay) => replay.status === "failed" || replay.status === "cancelled")
    ? EXIT.failed
    : EXIT.done;
}

async function subscriptionsOf(
  evreg: Evreg,
  { subscription, action }: Pick<RetryMany, "subscription" | "action">,
): Promise<readonly number[]> {
  if (subscription !== undefined) {
    const id = await subscriptionId(evreg, subscription);
    if (action === undefined) return [id];
    const { data } = await evreg.subscriptions.get(id);
    return data.action === action ? [id] : [];
  }
  const listed = await evreg.subscriptions.list(action === undefined ? {} : { action });
  // A replay would send all events of one that matches more than this action.
  const data = listed.data.filter((one) => action === undefined || one.action === action);
  if (data.length <= MAX_SUBSCRIPTIONS) return data.map(({ rowid }) => rowid);
  throw usageError(
    `There are ${counted(data.length, "subscription")}, and at most ${MAX_SUBSCRIPTIONS} are looked through: name one with --subscription, or those of one action with --action.`,
  );
}

/** Keeps those that have any. */
async function countOf(
  evreg: Evreg,
  subscriptions: readonly number[],
  input: NewReplay,
): Promise<readonly ReplayCount[]> {
  const signal = interruption();
  const counts: ReplayCount[] = [];
  for (const id of subscriptions) {
    signal.throwIfAborted();
    const { data } = await evreg.replays.count(id, input);
    if (data.total > 0) counts.push(data);
  }
  return counts;
}

function namesOf([first, ...others]: readonly ReplayCount[]): string {
  return others.length === 0
    ? escapeControl(subscriptionOf(first!))
    : counted(others.length + 1, "subscription");
}

/** One that cannot begin, as another replay of its subscription runs, holds up no other. */
async function begin(
  evreg: Evreg,
  counts: readonly ReplayCount[],
  input: NewReplay,
): Promise<{ readonly begun: readonly Replay[]; readonly refused: readonly string[] }> {
  const begun: Replay[] = [];
  const refused: string[] = [];
  for (const { subscription_id: id } of counts) {
    try {
      begun.push((await evreg.replays.start(id, input)).data);
    } catch (error) {
      const isOnlyOne = counts.length === 1;
      if (isOnlyOne || !(error instanceof EvregError) || error.code !== "conflict") throw error;
      refused.push(error.message);
    }
  }
  return { begun, refused };
}

async function follow(evreg: Evreg, begun: readonly Replay[]): Promise<readonly Replay[]> {
  const last: Replay[] = [];
  for (const replay of begun) last.push(await pollReplay(evreg.replays, replay));
  return last;
}
