import type { Rig } from "./rig.ts";
import type { BenchServer } from "./server.ts";
import { BATCH_ITEMS, payloadOf, SCHEMA } from "./workload.ts";

// Events of which each goes to many subscriptions.

const ACTION = "parcel.moved";
const NAMES = Array.from({ length: 24 }, (_, index) => `spread-${index}`);
const BATCHES = 4;
const EVENTS = BATCHES * BATCH_ITEMS;
const TIMEOUT_MS = 120_000;

export async function subscribeSpread(rig: Rig, server: BenchServer): Promise<void> {
  await server.api("POST", "/v1/actions", { action: ACTION, application: "shop", schemata: SCHEMA });
  for (const subscription of NAMES) {
    const handler = await rig.handler("fast", subscription);
    await server.api("POST", "/v1/subscriptions", {
      application: "shop",
      subscription,
      action: ACTION,
      handler,
    });
  }
}

/** Publishes, and answers deliveries a second up to the last one. */
export async function deliverSpread(rig: Rig, server: BenchServer): Promise<number> {
  const events = Array.from({ length: BATCH_ITEMS }, (_, item) => ({
    action: ACTION,
    payload: JSON.parse(payloadOf(item)) as object,
  }));
  await rig.receiver.call("reset", { record: false });
  const startedMs = performance.timeOrigin + performance.now();
  for (let sent = 0; sent < BATCHES; sent += 1) await server.api("POST", "/v1/events/batch", { events });
  let lastMs = startedMs;
  for (const name of NAMES) {
    const path = `/fast/${name}`;
    const wanted = { path, deliveries: EVENTS, timeoutMs: TIMEOUT_MS };
    if (!(await rig.receiver.call("await", wanted))) throw new Error(`${name} did not get everything.`);
    lastMs = Math.max(lastMs, (await rig.receiver.call("read", { path })).lastMs);
  }
  return (EVENTS * NAMES.length) / ((lastMs - startedMs) / 1_000);
}
