import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { CommitCounts, DamagedEvents } from "../../src/store/health.ts";
import { Backups } from "../../src/store/libsql/files/backup.ts";
import { createLibsqlStore } from "../../src/store/libsql/store.ts";
import { Keeper } from "../../src/store/libsql/thread/supervisor.ts";
import { WorkerHost } from "../../src/store/libsql/thread/worker-client.ts";
import { FlightQueue } from "../../src/store/libsql/thread/write-queue.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();

it("counts the deliveries an event makes towards its message, so that few such events go together", async () => {
  const setup = { path: join(scratch.path, "evreg.db"), release: true, encryption: undefined, nowMs: 1 };
  const commits = new CommitCounts(silentLogger);
  const worker = await WorkerHost.start(setup, () => undefined, commits);
  const parts = { clock: systemClock, logger: silentLogger, onFatal: () => undefined };
  const keeper = new Keeper(
    { ...parts, startWorker: () => Promise.reject(new Error("one is enough")) },
    worker,
  );
  const messages: number[] = [];
  const queue = new FlightQueue((cargo) => {
    messages.push(cargo.ops.length);
    return keeper.fly(cargo);
  });
  const store = createLibsqlStore({
    keeper,
    queue,
    commits,
    damaged: new DamagedEvents(silentLogger),
    backups: new Backups(setup.path, worker.report.file, keeper, systemClock),
    dataId: worker.report.dataId,
    key: undefined,
    letGo: () => keeper.close(),
  });

  const action = await store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, 1);
  const named = {
    application: "x",
    action: "a.b",
    handler: "https://h.example/",
    maxRetries: 0,
    active: true,
  };
  const subscriptions = Array.from({ length: 999 }, (_, n) =>
    store.catalog.createSubscription({ ...named, subscription: `s${n}`, secret: "s" }, 1),
  );
  const [first] = await Promise.all(subscriptions);
  const publish = () =>
    store.events.record([{ actionId: action.rowid, revision: 1, payload: Buffer.from("{}") }], 1);
  // What it makes is known from the first one on.
  expect(await publish()).toMatchObject([{ deliveries: 999 }]);

  messages.length = 0;
  await Promise.all(Array.from({ length: 9 }, publish));
  expect(messages).toEqual(Array.from({ length: 9 }, () => 1));

  await store.catalog.updateSubscription(first?.rowid ?? 0, { active: false }, 1);
  expect(await publish()).toMatchObject([{ deliveries: 998 }]);
  await store.close();
});
