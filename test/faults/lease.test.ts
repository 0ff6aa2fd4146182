import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Bench } from "../delivery/engine-setup.ts";
import { startProgram, temporaryFolder } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { setTimeout as pause } from "node:timers/promises";
import { Ledger } from "./ledger.ts";
import { isLong, lengthOf, report } from "./length.ts";
import { publish, register, unfinished } from "./load.ts";

// The promise under test: a worker that slept past the end of its lease cannot overwrite what became of the delivery since.

let receiver: Receiver;

beforeEach(async () => {
  receiver = await startReceiver();
});

afterEach(() => receiver.close());

describe("a worker that sleeps past its leases", () => {
  const sleeps = lengthOf("faults/lease")["late results"];
  const LEASE_MS = 90_000;

  test(`gets each late result refused, ${sleeps} times`, { timeout: 30_000 + sleeps * 500 }, async () => {
    const bench = await Bench.open();
    try {
      const sleeper = bench.engine();
      const subscription = await bench.subscribe(receiver.url);
      sleeper.start();
      for (let round = 0; round < sleeps; round += 1) {
        // Whatever the late answer says: a success must not count either, as the attempt it is of is over.
        const late = Promise.withResolvers<void>();
        receiver.script({ status: [200, 500, 410][round % 3] ?? 200, after: late.promise });
        const [event] = await bench.publish(subscription);
        sleeper.wake();
        await until("the attempt to be under way", () => receiver.requests.length === 2 * round + 1);
        // Another worker finds the lease ended, and delivers it.
        const laterMs = bench.clock.now() + LEASE_MS;
        expect(await bench.store.queue.releaseExpired(laterMs)).toBe(1);
        bench.clock.pass(LEASE_MS);
        await bench.once();
        expect(receiver.requests).toHaveLength(2 * round + 2);
        late.resolve();
        await until(
          "the late result to be refused",
          () => bench.log.with("after its lease").length === round + 1,
        );

        const { attempts, status, event_id } = await bench.delivery(subscription);
        expect([event_id, status]).toEqual([event, "delivered"]);
        expect(attempts.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
          [1, "returned"],
          [2, "delivered"],
        ]);
        expect((await bench.store.catalog.findSubscription(subscription.rowid))?.active).toBe(true);
      }
      report("worker asleep past its lease", { sleeps, refused: bench.log.with("after its lease").length });
    } finally {
      await bench.close();
    }
  });
});

describe.skipIf(!isLong)(
  "a server that is stopped and continued (long form only: a lease takes its time)",
  () => {
    const TIMEOUT_MS = 1_000;
    // A subscription may ask for a timeout of a minute, and a lease outlasts every attempt.
    const LEASE_MS = 90_000;

    test("stores nothing twice under one attempt, and loses nothing", { timeout: 240_000 }, async () => {
      const folder = temporaryFolder();
      const ledger = new Ledger();
      // Answered while the server sleeps.
      ledger.watch(receiver, (count) => (count === 1 ? { after: pause(500) } : {}));
      try {
        const server = await startProgram(folder.path, ["--dev"], {
          EVREG_DELIVERY_TIMEOUT_MS: String(TIMEOUT_MS),
        });
        await register(server.url, receiver.url);
        for (let count = 0; count < 20; count += 1) await publish(server.url, ledger);
        await until("attempts to be under way", () => receiver.requests.length > 0);
        server.child.kill("SIGSTOP");
        await pause(LEASE_MS + 1_000);
        server.child.kill("SIGCONT");
        await until(
          "every delivery came to its end",
          async () => (await unfinished(server.url)) === 0,
          60_000,
        );
        expect((await server.end("SIGTERM")).code).toBe(0);
        const balance = ledger.expectWhole(folder.path);
        report("server stopped past its leases", balance);
      } finally {
        folder.remove();
      }
    });
  },
);
