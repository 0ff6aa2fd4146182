import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { consume, type ConsumedDelivery } from "../../src/client/consume.ts";
import { connect } from "../../src/client/client.ts";
import type { Attempt } from "../../src/domain/delivery.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { temporaryFolder } from "../support/program.ts";
import { serveHere, type TestServer } from "../support/server.ts";
import { until } from "../support/until.ts";

const folder = temporaryFolder();
let server: TestServer;
let evreg: Evreg;
/** Each test has an action and a subscription of its own. */
let action: string;
let id: number;
let tests = 0;

beforeAll(async () => {
  server = await serveHere(folder.path, { dev: true });
  evreg = connect({ url: server.url });
});
afterAll(async () => {
  await evreg.close();
  await server.stop();
  folder.remove();
});
beforeEach(async () => {
  action = `order.created${++tests}`;
  await evreg.actions.create({ action, application: "shop", schemata: { type: "object" } });
  const names = { application: "shop", subscription: "worker", action };
  id = (await evreg.subscriptions.create({ ...names, mode: "pull", retry_schedule: [0] })).data.rowid;
});

async function publish(count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, n) => ({ action, payload: RawJson.fromValue({ n }) }));
  await evreg.events.publishBatch(events);
}

function numberOf(delivery: ConsumedDelivery): number {
  return (delivery.value() as { payload: { n: number } }).payload.n;
}

async function statuses(): Promise<string[]> {
  const { data } = await evreg.deliveries.list({ subscription: id });
  return data.map(({ status }) => status).toReversed();
}

/** The attempts of the test's delivery, counted from 0. */
async function attemptsOf(index: number): Promise<readonly Attempt[]> {
  const { data } = await evreg.deliveries.list({ subscription: id });
  return (await evreg.deliveries.get(data.toReversed()[index]!.rowid)).data.attempts;
}

test("a consumer gets each delivery, and says what became of it", async () => {
  await publish(4);
  const ending = new AbortController();
  const seen: [number, number][] = [];
  for await (const delivery of consume(evreg, id, { signal: ending.signal, consumer: "tester" })) {
    seen.push([numberOf(delivery), delivery.attempt]);
    if (seen.length === 2) await delivery.fail("not today", { status: 503 });
    else if (seen.length === 3) {
      const { status } = await delivery.run(() => Promise.reject(new Error("no idea")));
      expect(status).toBe("waiting");
    } else
      expect(await delivery.done({ status: 200 })).toMatchObject({ outcome: "stored", status: "delivered" });
    if (seen.length === 6) ending.abort();
  }
  expect(seen.map(([n]) => n).toSorted((a, b) => a - b)).toEqual([0, 1, 1, 2, 2, 3]);
  expect(await statuses()).toEqual(["delivered", "delivered", "delivered", "delivered"]);
  expect(await attemptsOf(1)).toMatchObject([
    { consumer: "tester", status_code: 503, response: "not today" },
    { consumer: "tester", outcome: "delivered", status_code: 200 },
  ]);
});

test.each([
  ["a long reason", "x".repeat(20_000), 503, { status_code: 503, response: "x".repeat(1_024) }],
  ["half of a surrogate pair in a reason", "x\ud800", 500, { status_code: 500, response: "x\ufffd" }],
  [
    "a status that is none",
    "why",
    999,
    { status_code: null, error_code: "consumer_failed", response: "why" },
  ],
])("a failure with %s counts as any other", async (_, reason, status, attempt) => {
  await publish(1);
  for await (const delivery of consume(evreg, id)) {
    expect(await delivery.fail(reason, { status })).toMatchObject({ outcome: "stored" });
    break;
  }
  expect(await attemptsOf(0)).toMatchObject([attempt]);
});

test("so many are under way at a time as it asks for", async () => {
  await publish(12);
  const ending = new AbortController();
  const under = { now: 0, most: 0, ended: 0 };
  const running: Promise<unknown>[] = [];
  for await (const delivery of consume(evreg, id, { concurrency: 3, signal: ending.signal })) {
    const work = async (): Promise<void> => {
      under.now += 1;
      under.most = Math.max(under.most, under.now);
      await evreg.health();
      under.now -= 1;
      under.ended += 1;
      if (under.ended === 12) ending.abort();
    };
    running.push(delivery.run(work));
  }
  await Promise.all(running);
  expect(under).toMatchObject({ now: 0, most: 3, ended: 12 });
  expect(new Set(await statuses())).toEqual(new Set(["delivered"]));
});

async function throwOutOfTheLoop(): Promise<void> {
  for await (const delivery of consume(evreg, id, { concurrency: 3 })) {
    throw new Error(`cannot do ${numberOf(delivery)}`);
  }
}

test("whoever throws out of the loop fails that delivery, and gives back what was not begun", async () => {
  await publish(3);
  await expect(throwOutOfTheLoop()).rejects.toThrow("cannot do 0");
  expect(await statuses()).toEqual(["waiting", "pending", "pending"]);
  expect((await attemptsOf(0))[0]?.response).toBe("The consumer's loop ended before this delivery was done.");
});

test("it goes on when the server has started again, with what it had", async () => {
  await publish(3);
  const ending = new AbortController();
  const seen: number[] = [];
  const failures: string[] = [];
  const { port } = new URL(server.url);
  const options = {
    signal: ending.signal,
    disconnected: ({ code }: { readonly code: string }) => void failures.push(code),
  };
  for await (const delivery of consume(evreg, id, options)) {
    seen.push(numberOf(delivery));
    if (seen.length === 2) {
      await server.stop();
      const begun = delivery.done();
      server = await serveHere(folder.path, { dev: true, changes: { port: Number(port) } });
      expect(await begun).toMatchObject({ outcome: "stored" });
    } else await delivery.done();
    if (seen.length === 3) ending.abort();
  }
  expect(seen).toEqual([0, 1, 2]);
  expect(failures).toContain("unreachable");
  expect(await statuses()).toEqual(["delivered", "delivered", "delivered"]);
});

test("leases are extended while the work takes long", async () => {
  await publish(1);
  const ending = new AbortController();
  for await (const delivery of consume(evreg, id, { leaseMs: 3_000, signal: ending.signal })) {
    const renewed = Date.parse(delivery.expires_at) + 100;
    // No clock can be set here, as the server's and the consumer's are the machine's.
    await until("the lease to have ended, were it not extended", () => Date.now() >= renewed);
    expect(delivery.signal.aborted).toBe(false);
    expect(await delivery.done()).toMatchObject({ outcome: "stored" });
    ending.abort();
  }
  expect(await attemptsOf(0)).toMatchObject([{ attempt: 1 }]);
});

async function consumeNothing(): Promise<void> {
  for await (const _ of consume(evreg, 999)) expect.unreachable();
}

test("a name in the place of the ID is refused", async () => {
  await expect(consume(evreg, "shop/worker" as unknown as number).next()).rejects.toThrow(
    "subscription: must be the ID of the subscription, a number",
  );
});

test("what no repetition would mend ends it", async () => {
  await expect(consumeNothing()).rejects.toMatchObject({ code: "not_found" });
});

test("what a claim brings after the end goes back, and does not wait for its lease to end", async () => {
  await publish(1);
  const ending = new AbortController();
  const subscriptions = {
    finish: (...args: Parameters<Evreg["subscriptions"]["finish"]>) => evreg.subscriptions.finish(...args),
    async claim(...[subscription, input, signal]: Parameters<Evreg["subscriptions"]["claim"]>) {
      const answer = await evreg.subscriptions.claim(subscription, input);
      // The answer is on its way.
      ending.abort();
      signal?.throwIfAborted();
      return answer;
    },
  };
  const taken: ConsumedDelivery[] = [];
  for await (const delivery of consume({ subscriptions }, id, { signal: ending.signal }))
    taken.push(delivery);
  expect(taken).toEqual([]);
  expect(await statuses()).toEqual(["pending"]);
});
