import { setTimeout as pause } from "node:timers/promises";
import { startChild } from "./child.ts";
import type { FillCalls } from "./fill.ts";
import type { Rig } from "./rig.ts";
import type { BenchServer, ServerPlace } from "./server.ts";

const LONGEST_MS = 60_000;

/** Publishes events of `WAITING_ACTION` into a folder that no server has, for one subscription to each of the handlers. */
export async function fill(
  { folder }: ServerPlace,
  handlers: readonly string[],
  events: number,
): Promise<void> {
  const filler = startChild<FillCalls>("fill.ts");
  await filler.call("fill", { folder, handlers, events });
  await filler.end("SIGTERM");
}

/** From the first arrival until all are stored as delivered; answers deliveries a second. */
export async function deliverAll(
  rig: Rig,
  server: BenchServer,
  { path, deliveries: wanted }: { readonly path: string; readonly deliveries: number },
): Promise<number> {
  const inTime = await rig.receiver.call("await", { path, deliveries: wanted, timeoutMs: LONGEST_MS });
  const { firstMs, deliveries, requests } = await rig.receiver.call("read", { path });
  if (!inTime) throw new Error(`${deliveries} of ${wanted} deliveries arrived in ${LONGEST_MS / 1_000} s.`);
  while ((await unfinished(server, "pending")) || (await unfinished(server, "delivering"))) await pause(10);
  const storedMs = performance.timeOrigin + performance.now();
  if (requests !== wanted) throw new Error(`${requests} requests came for ${wanted} deliveries.`);
  return wanted / ((storedMs - firstMs) / 1_000);
}

async function unfinished(server: BenchServer, status: string): Promise<boolean> {
  const { data } = await server.api<{ data: unknown[] }>("GET", `/v1/deliveries?status=${status}&limit=1`);
  return data.length > 0;
}
