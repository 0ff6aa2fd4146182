import type { BenchServer } from "./server.ts";
import { DELIVERED_ACTION, PAUSED_ACTION, SCHEMA } from "./workload.ts";

/** Registers the two actions that the scenarios publish to, one subscription each, and any others with a paused one. */
export async function register(
  server: BenchServer,
  handler: string,
  others: readonly string[] = [],
): Promise<void> {
  for (const action of [PAUSED_ACTION, DELIVERED_ACTION, ...others]) {
    await server.api("POST", "/v1/actions", { action, application: "shop", schemata: SCHEMA });
    await server.api("POST", "/v1/subscriptions", {
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
