import type { NewReplay, Replay } from "../domain/replay.ts";
import type { Evreg } from "../evreg.ts";
import { REPLAY_COUNT_RECORD, REPLAY_RECORD } from "./columns/replays.ts";
import { EXIT } from "./exit-code.ts";
import { followReplay } from "./follow-replay.ts";
import { interruption } from "./interruption.ts";
import { nextCommand, serveCommand } from "./next-command.ts";
import { note, type Output } from "./output.ts";
import { printableLine } from "./printable.ts";
import { tellWhenPaused } from "./tell-when-paused.ts";

export interface ReplayMany {
  readonly subscription: number;
  readonly input: NewReplay;
  readonly dryRun: boolean;
  readonly wait: boolean;
  readonly output: Output;
}

export async function replayMany(evreg: Evreg, options: ReplayMany): Promise<number> {
  const { subscription, input, dryRun, wait, output } = options;
  if (dryRun) {
    await output.record(await evreg.replays.count(subscription, input), REPLAY_COUNT_RECORD);
    return EXIT.done;
  }
  const { data: begun } = await evreg.replays.start(subscription, input);
  await tellWhatItWaitsFor(evreg, begun);
  if (!wait) {
    await output.record({ data: begun }, REPLAY_RECORD);
    if (output.format === "table") note(`It goes on in the background. ${look(begun)}`);
    return EXIT.done;
  }
  const signal = interruption();
  const last = await followReplay(evreg.replays, begun, signal).catch((error: unknown) => {
    note(`Replay ${begun.rowid} has begun; only it cannot be followed. ${look(begun)}`);
    throw error;
  });
  await output.record({ data: last }, REPLAY_RECORD);
  if (last.status === "running") {
    note(
      `Interrupted; replay ${last.rowid} is not: the server goes on with it, or the next one on its data folder. ${look(last)}`,
    );
    return EXIT.interrupted;
  }
  if (last.status === "done") return EXIT.done;
  const why =
    last.reason === null
      ? ". What was not sent, another one sends: evreg subscriptions replay --help"
      : `: ${printableLine(last.reason)}`;
  note(`Replay ${last.rowid} did not get to its end${why}`);
  return EXIT.failed;
}

/** Into a folder without a server, and to a paused subscription, nothing is sent yet. */
async function tellWhatItWaitsFor(evreg: Evreg, { subscription_id: id }: Replay): Promise<void> {
  const health = await evreg.health().catch(() => undefined);
  if (health?.data.engine === "stopped")
    note(`It begins with the next server on this data folder: ${serveCommand()}`);
  await tellWhenPaused(evreg, [id]);
}

function look({ rowid }: Replay): string {
  return `Look at it: ${nextCommand(`replays get ${rowid}`)}. End it: ${nextCommand(`replays cancel ${rowid}`)}`;
}
