import { startChild } from "./child.ts";
import { HISTORY_ACTIONS, type History, historyUntil } from "./history.ts";
import type { SeedCalls } from "./seed.ts";
import { type BenchServer, type ServerPlace, startServer } from "./server.ts";
import { DELIVERED_ACTION, PAUSED_ACTION, SCHEMA } from "./workload.ts";

/** Registers the two actions that the scenarios publish to, one subscription each, and any others with a paused one. */
export async function register(
  server: BenchServer,
  handler: string,
  others: readonly string[] = [],
): Promise<void> {
  for (const action of [PAUSED_ACTION, DELIVERED_ACTION, ...others]) {
    await server.send("POST", "/v1/actions", { action, application: "shop", schemata: SCHEMA });
    await server.send("POST", "/v1/subscriptions", {
      application: "billing",
      subscription: "orders",
      action,
      handler,
      active: action === DELIVERED_ACTION,
    });
  }
}

/** How many events the server holds. */
export async function countEvents(server: BenchServer): Promise<number> {
  const { meta } = await server.api<{ meta: { total: number } }>("GET", "/v1/events?limit=1");
  return meta.total;
}

/** Data that have been in use for a month. */
export interface Seeded {
  readonly place: ServerPlace;
  readonly history: History;
}

/**
 * Fills a data folder, or a database, with the history, by way of two servers: one makes the tables, one brings up to date what it
 * counts.
 * @param prepare what the first one is asked for beside that
 */
export async function seedPlace(
  place: ServerPlace,
  handler: string,
  size: number,
  prepare: (server: BenchServer) => Promise<void> = () => Promise.resolve(),
): Promise<Seeded> {
  const maker = await startServer(place);
  await register(
    maker,
    handler,
    HISTORY_ACTIONS.slice(2).map(({ action }) => action),
  );
  await prepare(maker);
  await maker.stop();

  const history = historyUntil(Date.now(), size);
  const seed = startChild<SeedCalls>("seed.ts");
  await seed.call("seed", { folder: place.folder, database: place.database, history });
  await seed.end("SIGKILL");

  const checker = await startServer(place);
  const events = await countEvents(checker);
  if (events !== size) throw new Error(`The filled place tells of ${events} events.`);
  await checker.stop();
  return { place, history };
}
