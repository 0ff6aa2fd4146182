import { join } from "node:path";
import { startChild } from "./child.ts";
import { HISTORY_ACTIONS, type History, historyUntil } from "./history.ts";
import { countEvents, register } from "./registry.ts";
import type { SeedCalls } from "./seed.ts";
import { type ServerPlace, startServer } from "./server.ts";
import { DELIVERED_ACTION, PAUSED_ACTION } from "./workload.ts";

export interface SeededFolder {
  readonly place: ServerPlace;
  readonly history: History;
}

/** Fills a data folder with the history, by way of two servers: one makes the file, one brings up to date what it counts. */
export async function seedFolder(place: ServerPlace, handler: string, size: number): Promise<SeededFolder> {
  const maker = await startServer(place);
  const others = HISTORY_ACTIONS.map(({ action }) => action).filter(
    (action) => action !== PAUSED_ACTION && action !== DELIVERED_ACTION,
  );
  await register(maker, handler, others);
  await maker.stop();

  const history = historyUntil(Date.now(), size);
  const seed = startChild<SeedCalls>("seed.ts");
  await seed.call("seed", { file: join(place.folder, "evreg.db"), history });
  await seed.end("SIGKILL");

  const checker = await startServer(place);
  const events = await countEvents(checker);
  if (events !== size) throw new Error(`The filled folder tells of ${events} events.`);
  await checker.stop();
  return { place, history };
}
