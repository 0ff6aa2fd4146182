import { afterAll, beforeAll, expect } from "vitest";
import { until } from "../support/until.ts";
import { type RunningProgram, temporaryFolder } from "../support/program.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { Ledger } from "./ledger.ts";
import { publish, settled } from "./load.ts";

/** What most faults are tried on, for all tests of a file. */
export interface Fault {
  /** The data folder of the servers. */
  readonly path: string;
  readonly ledger: Ledger;
  /** The handler, which is there once the first test runs. */
  readonly receiver: Receiver;
}

/** @param answer what the handler answers; 200 where none is given */
export function useFault(answer?: Parameters<Ledger["watch"]>[1]): Fault {
  const folder = temporaryFolder();
  const ledger = new Ledger();
  let receiver: Receiver | undefined;
  beforeAll(async () => {
    receiver = await startReceiver();
    ledger.watch(receiver, answer);
  });
  afterAll(async () => {
    await receiver?.close();
    folder.remove();
  });
  return {
    path: folder.path,
    ledger,
    get receiver() {
      return receiver!;
    },
  };
}

/** Waits until every delivery came to its end, and stops the server in order. */
export async function finish(server: RunningProgram, withinMs = 60_000): Promise<void> {
  await settled(server.url, withinMs);
  expect((await server.end("SIGTERM")).code).toBe(0);
}

/** Waits until the server takes a publish again and is well; answers how long that took. */
export async function healed(url: string, ledger: Ledger, withinMs: number): Promise<number> {
  const beganMs = performance.now();
  const isTaken = async (): Promise<boolean> => (await publish(url, ledger)) === 201;
  const isWell = async (): Promise<boolean> => (await fetch(`${url}/health`)).status === 200;
  await until("a publish to be taken", isTaken, withinMs);
  await until("the server to be well", isWell, withinMs);
  return performance.now() - beganMs;
}
