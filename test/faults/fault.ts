import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect } from "vitest";
import { post } from "../support/post.ts";
import { until } from "../support/until.ts";
import { type RunningProgram, temporaryFolder } from "../support/program.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { Ledger } from "./ledger.ts";

const ACTION = "load.sent";
const TICK_MS = 10;
const LOOK_MS = 20;

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

/** Creates the action that `Load` publishes for, and a subscription of it. */
export async function register(url: string, handler: string, maxRetries = 10): Promise<void> {
  await create(`${url}/v1/actions`, {
    action: ACTION,
    application: "load",
    schemata: { type: "object", required: ["n"], properties: { n: { type: "integer" } } },
  });
  await create(`${url}/v1/subscriptions`, {
    application: "load",
    subscription: "all",
    action: ACTION,
    handler,
    max_retries: maxRetries,
  });
}

/** Publishes one event and notes what was answered; a broken connection leaves it unanswered. Answers the status. */
export async function publish(
  url: string,
  ledger: Ledger,
  filler = "",
  action = ACTION,
): Promise<number | undefined> {
  const n = ledger.next();
  try {
    const response = await post(`${url}/v1/events`, { action, payload: { n, filler } });
    const { data } = (await response.json()) as { data?: { rowid: number } };
    ledger.answered(n, response.status, data?.rowid);
    return response.status;
  } catch (error) {
    if (error instanceof TypeError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Publishes at a steady rate, whether answers come or not, until stopped. */
export class Load {
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #running: Promise<void>;
  #isStopped = false;

  constructor(url: string, ledger: Ledger, perSecond: number) {
    this.#running = this.#run(url, ledger, perSecond);
  }

  /** Resolves when everything begun was answered or broken off. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    await Promise.all(this.#underWay);
  }

  async #run(url: string, ledger: Ledger, perSecond: number): Promise<void> {
    const beganMs = performance.now();
    let started = 0;
    while (!this.#isStopped) {
      const dueByNow = ((performance.now() - beganMs) / 1_000) * perSecond;
      for (; started < dueByNow; started += 1) {
        const one = publish(url, ledger).finally(() => this.#underWay.delete(one));
        this.#underWay.add(one);
      }
      await pause(TICK_MS);
    }
  }
}

/** Waits until every delivery came to its end. */
export function settled(url: string, withinMs = 60_000): Promise<void> {
  return until("every delivery came to its end", async () => (await unfinished(url)) === 0, withinMs);
}

/** Deliveries that have not come to an end. Where there are some it takes a while, as each look is work for the server. */
async function unfinished(url: string): Promise<number> {
  let count = 0;
  for (const status of UNFINISHED) count += (await listed(url, `&status=${status}`)).length;
  if (count > 0) return pause(LOOK_MS, count);
  // One may have gone from a status that was still to be asked for to one that had been: all of them in one look.
  return (await listed(url)).filter(({ status }) => UNFINISHED.has(status)).length;
}

const UNFINISHED: ReadonlySet<string> = new Set(["pending", "delivering", "waiting"]);

async function listed(url: string, filter = ""): Promise<readonly { readonly status: string }[]> {
  const response = await fetch(`${url}/v1/deliveries?limit=500${filter}`);
  return ((await response.json()) as { data: { status: string }[] }).data;
}

export async function create(url: string, body: unknown): Promise<void> {
  const response = await post(url, body);
  if (response.status !== 201)
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
}
