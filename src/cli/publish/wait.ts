import { setTimeout as sleepFor } from "node:timers/promises";
import { type Delivery, isFinal } from "../../domain/delivery.ts";
import type { NewReplay, Replay } from "../../domain/replay.ts";
import type { Evreg, ReplaysPort } from "../../evreg.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output } from "../io/output.ts";
import { progressBar } from "../io/progress.ts";
import { escapeControl } from "../io/text.ts";
import { notePaused, serverCommand } from "../notes.ts";
import { REPLAY_COUNT_RECORD, REPLAYS } from "../views/replays.ts";
import { nextCommand, plainCommand } from "../target/next-command.ts";
import { EXIT } from "../usage-errors.ts";

/** Polls soon at first, then about once a second. */
const FIRST_DELIVERY_POLL_MS = 25;
const FIRST_REPLAY_POLL_MS = 50;
const MAX_POLL_MS = 1_000;
const POLL_BACKOFF = 1.6;

interface PollOptions {
  readonly signal: AbortSignal;
  /** `undefined`: as long as it takes. */
  readonly timeoutMs: number | undefined;
  readonly nowMs: () => number;
  /** Rejects when the signal aborts. */
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>;
  /** Whether an open one is worth waiting for; every one is unless told. */
  readonly isAwaited?: (delivery: Delivery) => boolean;
  /** Called before each wait. */
  readonly waiting?: (deliveries: readonly Delivery[]) => void;
}

export interface PollResult {
  readonly deliveries: readonly Delivery[];
  /** The deliveries that were open and not waited for. */
  readonly leftOut: ReadonlySet<Delivery>;
  /** `held`: the rest waits for a paused subscription, so nothing more happens by itself. */
  readonly end: "final" | "held" | "timeout" | "interrupted";
}

/** Polls deliveries until each has ended. @param read all that there are */
export async function pollDeliveries(
  read: () => Promise<readonly Delivery[]>,
  options: PollOptions,
): Promise<PollResult> {
  const { signal, timeoutMs, nowMs, sleep } = options;
  const endsAtMs = timeoutMs === undefined ? Infinity : nowMs() + timeoutMs;
  let waitMs = FIRST_DELIVERY_POLL_MS;
  for (;;) {
    const deliveries = await read();
    const open: Delivery[] = [];
    const leftOut = new Set<Delivery>();
    for (const delivery of deliveries) {
      if (isFinal(delivery.status)) continue;
      if (options.isAwaited?.(delivery) === false) leftOut.add(delivery);
      else open.push(delivery);
    }
    const result = { deliveries, leftOut };
    if (open.length === 0) return { ...result, end: "final" };
    if (open.every((delivery) => delivery.status === "held")) return { ...result, end: "held" };
    const remainingMs = endsAtMs - nowMs();
    if (remainingMs <= 0) return { ...result, end: "timeout" };
    options.waiting?.(deliveries);
    try {
      await sleep(Math.min(waitMs, remainingMs), signal);
    } catch {
      return { ...result, end: "interrupted" };
    }
    waitMs = Math.min(MAX_POLL_MS, waitMs * POLL_BACKOFF);
  }
}

/** Polls a replay until it has ended, or until an interruption; answers it as it was seen last. */
export async function pollReplay(replays: ReplaysPort, started: Replay): Promise<Replay> {
  const signal = interruption();
  const bar = await progressBar("{bar} {percentage}% | {counts}", { counts: countsOf(started) });
  let waitMs = FIRST_REPLAY_POLL_MS;
  try {
    for (let replay = started; ;) {
      if (replay.status !== "running") return replay;
      bar.update(replay.queued, Math.max(1, replay.total ?? 1), { counts: countsOf(replay) });
      try {
        await sleepFor(waitMs, undefined, { signal });
      } catch {
        return replay;
      }
      waitMs = Math.min(MAX_POLL_MS, waitMs * POLL_BACKOFF);
      replay = (await replays.get(replay.rowid)).data;
    }
  } finally {
    bar.stop();
  }
}

/** A replay is done before its last deliveries have ended. */
export function whatBecomes(): string {
  return `All are on their way, with all their retries. See what fails again: ${nextCommand("deliveries --status failed")}`;
}

function countsOf({ queued, total }: Replay): string {
  if (total === null) return "counting";
  return `${queued.toLocaleString("en")} of ${total.toLocaleString("en")} handed to delivery`;
}

export async function runReplay(
  evreg: Evreg,
  subscription: number,
  input: NewReplay,
  { dryRun, wait, output }: { readonly dryRun: boolean; readonly wait: boolean; readonly output: Output },
): Promise<number> {
  if (dryRun) {
    await output.record(await evreg.replays.count(subscription, input), REPLAY_COUNT_RECORD);
    return EXIT.done;
  }
  const { data: started } = await evreg.replays.start(subscription, input);
  // Into a folder without a server, and to a paused subscription, nothing is sent yet.
  const health = await evreg.health().catch(() => undefined);
  if (health?.data.engine === "stopped")
    note(`It begins with the next server on this data folder: ${await serverCommand(evreg)}`);
  await notePaused(evreg, [started.subscription_id]);
  const { rowid } = started;
  const look = `Look at it: ${nextCommand(`replays get ${rowid}`)}. End it: ${nextCommand(`replays cancel ${rowid}`)}`;
  if (!wait) {
    await output.record({ data: started }, REPLAYS.record);
    if (output.format === "table") note(`It goes on in the background. ${look}`);
    return EXIT.done;
  }
  const last = await pollReplay(evreg.replays, started).catch((error: unknown) => {
    note(`Replay ${rowid} has begun; only it cannot be followed. ${look}`);
    throw error;
  });
  await output.record({ data: last }, REPLAYS.record);
  if (last.status === "running") {
    note(
      `Interrupted; replay ${rowid} is not: the server goes on with it, or the next one on its data folder. ${look}`,
    );
    return EXIT.interrupted;
  }
  if (last.status === "done") {
    output.note(whatBecomes());
    return EXIT.done;
  }
  const why =
    last.reason === null
      ? ". What was not sent, another one sends: " + plainCommand("subscriptions replay --help")
      : `: ${escapeControl(last.reason)}`;
  note(`Replay ${rowid} did not get to its end${why}`);
  return EXIT.failed;
}
