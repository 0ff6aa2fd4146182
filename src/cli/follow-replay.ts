import { setTimeout as sleep } from "node:timers/promises";
import type { Replay } from "../domain/replay.ts";
import type { ReplaysPort } from "../evreg.ts";
import { longerWaitMs } from "./look-wait.ts";
import { progressBar } from "./progress-bar.ts";

const FIRST_REPLAY_POLL_MS = 50;

/** Looks at a replay until it has ended, or until the signal; answers it as it was seen last. */
export async function followReplay(
  replays: Pick<ReplaysPort, "get">,
  begun: Replay,
  signal: AbortSignal,
): Promise<Replay> {
  const bar = await progressBar("{bar} {percentage}% | {counts}", { counts: countsOf(begun) });
  let waitMs = FIRST_REPLAY_POLL_MS;
  try {
    for (let replay = begun; ;) {
      if (replay.status !== "running") return replay;
      bar?.update(replay.queued, Math.max(1, replay.total ?? 1), { counts: countsOf(replay) });
      try {
        await sleep(waitMs, undefined, { signal });
      } catch {
        return replay;
      }
      waitMs = longerWaitMs(waitMs);
      replay = (await replays.get(replay.rowid)).data;
    }
  } finally {
    bar?.stop();
  }
}

function countsOf({ queued, total }: Replay): string {
  if (total === null) return "counting";
  return `${queued.toLocaleString("en")} of ${total.toLocaleString("en")} handed to delivery`;
}
