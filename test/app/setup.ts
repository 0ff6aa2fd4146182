import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type RunningServer, type StartOptions, startServer } from "../../src/app/server.ts";
import type { EvregErrorCode } from "../../src/domain/error.ts";
import type { Evreg } from "../../src/evreg.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { post } from "../support/post.ts";
import { openReceiver } from "../support/open-receiver.ts";
import type { Receiver } from "../support/receiver.ts";
import { type Changes, configFor } from "../support/server.ts";

/** A path for a data folder that does not exist yet. */
export function dataFolder(): string {
  const parent = mkdtempSync(join(tmpdir(), "evreg-app-"));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  return join(parent, "data");
}

/** Starts a server that is stopped after the test at the latest. */
export async function start(
  data: string,
  changes: Changes = {},
  options: Partial<StartOptions> = {},
): Promise<RunningServer> {
  const server = await startServer({
    config: configFor(data, changes),
    version: "1.2.3",
    logger: silentLogger,
    ...options,
  });
  onTestFinished(() => server.stop());
  return server;
}

/** Closes the port after the test at the latest. */
export function closing(evreg: Evreg): Evreg {
  onTestFinished(() => evreg.close());
  return evreg;
}

/** Settings of a server whose handlers are receivers of tests. */
export const LOOPBACK = { allowHttp: true, allowNetworks: ["127.0.0.0/8"] };

export const ORDER_PLACED = {
  action: "order.placed",
  application: "shop",
  schemata: { type: "object", properties: { id: { type: "string" } } },
} as const;

/** Makes an action with so many subscriptions that a receiver gets, each at a path of its own. */
export async function subscribed(
  { evreg }: RunningServer,
  count = 1,
  action: string = ORDER_PLACED.action,
): Promise<Receiver> {
  const receiver = await openReceiver();
  const names = { action, application: "shop" };
  await evreg.actions.create({ ...names, schemata: { type: "object" } });
  for (let number = 1; number <= count; number += 1) {
    const handler = `${receiver.url}/${number}`;
    await evreg.subscriptions.create({ ...names, subscription: `hook-${number}`, handler });
  }
  return receiver;
}

export function publish(
  { url }: RunningServer,
  id: number,
  action: string = ORDER_PLACED.action,
): Promise<Response> {
  return post(`${url}/v1/events`, { action, payload: { id } });
}

export async function status(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers });
  await response.arrayBuffer();
  return response.status;
}

/** A call is refused with this code, and with this text in its message. */
export async function refused(call: Promise<unknown>, code: EvregErrorCode, text: string): Promise<void> {
  await expect(call).rejects.toMatchObject({ code, message: expect.stringContaining(text) });
}
