import { setTimeout as sleep } from "node:timers/promises";
import type { NewReplay, Replay } from "../../domain/replay.ts";
import type { Evreg } from "../../evreg.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output } from "../io/output.ts";
import { progressBar } from "../io/progress.ts";
import { escapeControl } from "../io/text.ts";
import { notePaused, serverCommand } from "../notes.ts";
import { REPLAY_COUNT_RECORD, REPLAYS } from "../views/deliveries.ts";
import { nextCommand, plainCommand } from "../target/next-command.ts";
import { EXIT } from "../usage-errors.ts";

/** Polls soon at first, then about once a second. */
const FIRST_POLL_MS = 25;
const MAX_POLL_MS = 1_000;
const POLL_BACKOFF = 1.6;

export interface Polled<T> {
  /** What was read last. */
  readonly last: T;
  readonly end: "over" | "timeout" | "interrupted";
}

interface PollOptions<T> {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** As long as it takes, if there is none. */
  readonly timeoutMs?: number | undefined;
  /** Called before each wait. */
  readonly waiting: (last: T) => void;
}

/** Reads again and again until it is over. */
export async function poll<T>(
  read: () => Promise<T>,
  isOver: (last: T) => boolean,
  { signal, timeoutMs = Infinity, waiting }: PollOptions<T>,
): Promise<Polled<T>> {
  const endsAtMs = performance.now() + timeoutMs;
  for (let waitMs = FIRST_POLL_MS; ; waitMs = Math.min(MAX_POLL_MS, waitMs * POLL_BACKOFF)) {
    const last = await read();
    if (isOver(last)) return { last, end: "over" };
    const remainingMs = endsAtMs - performance.now();
    if (remainingMs <= 0) return { last, end: "timeout" };
    waiting(last);
    const isInterrupted = await sleep(Math.min(waitMs, remainingMs), false, { signal }).catch(() => true);
    if (isInterrupted) return { last, end: "interrupted" };
  }
}

/** Polls a replay until it has ended, or until an interruption; answers it as it was seen last. */
async function pollReplay(evreg: Evreg, started: Replay): Promise<Replay> {
  const signal = interruption();
  const bar = await progressBar("{bar} {percentage}% | {counts}", { counts: countsOf(started) });
  const read = async (): Promise<Replay> => (await evreg.replays.get(started.rowid)).data;
  const waiting = (replay: Replay): void =>
    bar.update(replay.queued, Math.max(1, replay.total ?? 1), { counts: countsOf(replay) });
  try {
    return (await poll(read, ({ status }) => status !== "running", { signal, waiting })).last;
  } finally {
    bar.stop();
  }
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
  await notePaused(evreg, started);
  const { rowid } = started;
  const look = `Look at it: ${nextCommand(`replays get ${rowid}`)}. End it: ${nextCommand(`replays cancel ${rowid}`)}`;
  if (!wait) {
    await output.record({ data: started }, REPLAYS.record);
    output.note(`It goes on in the background. ${look}`);
    return EXIT.done;
  }
  const last = await pollReplay(evreg, started).catch((error: unknown) => {
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
    // A replay is done before its last deliveries have ended.
    output.note(
      last.total === 0
        ? "There was none to send."
        : `All are on their way, with all their retries. See what fails again: ${nextCommand("deliveries --status failed")}`,
    );
    return EXIT.done;
  }
  const why =
    last.reason === null
      ? ". What was not sent, another one sends: " + plainCommand("subscriptions replay --help")
      : `: ${escapeControl(last.reason)}`;
  note(`Replay ${rowid} did not get to its end${why}`);
  return EXIT.failed;
}
