import { connect as connectSocket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { type Got, startHarness, type Harness } from "./harness.ts";

let harness: Harness;
let slow: Promise<void> = Promise.resolve();
let started = Promise.withResolvers<AbortSignal | undefined>();

const stopping = new AbortController();

beforeAll(async () => {
  harness = await startHarness({
    stopping: stopping.signal,
    http: { headersTimeoutMs: 300, requestTimeoutMs: 300, checkEveryMs: 10 },
    around: (evreg) => ({
      backup(signal) {
        started.resolve(signal);
        return slow.then(() => evreg.backup(signal));
      },
    }),
  });
});
afterAll(() => harness.close());

const get = async (from = harness): Promise<Got> =>
  from.ask("GET /v1/backup", { token: await from.token("admin") });

test("a backup describes itself in headers, and is logged", async () => {
  const { status, headers: described, bytes } = await get();
  expect(status).toBe(200);
  expect(described).toMatchObject({
    "content-type": "application/vnd.sqlite3",
    "content-length": String(bytes.length),
    "content-disposition": 'attachment; filename="evreg-backup.db"',
    "cache-control": "no-store",
    "repr-digest": expect.stringMatching(/^sha-256=:[A-Za-z0-9+/]{43}=:$/),
  });
  expect(harness.log).toContainEqual(
    expect.objectContaining({ level: "info", fields: expect.objectContaining({ path: "/v1/backup" }) }),
  );
});

test("the connection of a backup is kept while it is made, where an idle one is closed", async () => {
  const made = Promise.withResolvers<void>();
  slow = made.promise;
  const asked = get();
  // A connection that is as old by then, on which nothing is asked, has been cut when this ends.
  for (let round = 0; round < 2; round += 1) {
    const idle = connectSocket(harness.port, "127.0.0.1");
    await new Promise((resolve) => idle.on("error", resolve).on("close", resolve).resume());
  }
  made.resolve();
  expect((await asked).status).toBe(200);
});

test("a caller who stops reading a backup is cut after a minute, and the next one is served", async () => {
  const clock = new ManualClock();
  const other = await startHarness({ clock });
  const { store } = other.local;
  const { rowid: actionId } = await store.catalog.createAction(
    { action: "a.b", application: "x", schemata: {} },
    1,
  );
  const event = { actionId, revision: 1, payload: Buffer.alloc(250_000, "x") };
  // More than the system takes for a caller that does not read.
  for (let round = 0; round < 4; round += 1) {
    await store.events.record(
      Array.from({ length: 15 }, () => event),
      1,
    );
  }
  const stalled = connectSocket(other.port, "127.0.0.1");
  const cut = new Promise((resolve) => stalled.on("error", resolve).on("close", resolve));
  const token = await other.token("admin");
  const request = ["GET /v1/backup HTTP/1.1", "host: x", `authorization: Bearer ${token}`, "", ""];
  stalled.write(request.join("\r\n"));
  await new Promise((resolve) => stalled.once("readable", resolve));
  expect((await get(other)).status).toBe(409);
  await clock.advance(59_999);
  // Until the system's buffers are full, pieces are still taken.
  let next = await get(other);
  expect(next.status).toBe(409);
  for (; next.status === 409; next = await get(other)) await clock.advance(60_000);
  expect(next.status).toBe(200);
  stalled.resume();
  await cut;
  await other.close();
});

// The last one, as nothing is copied after it.
test("a backup that is interrupted by a stop fails, and the log says so", async () => {
  const made = Promise.withResolvers<void>();
  slow = made.promise;
  started = Promise.withResolvers();
  const asked = get();
  await started.promise;
  stopping.abort(new EvregError("unavailable", "The server is being stopped."));
  made.resolve();
  const body = { error: "The server is being stopped.", code: 503 };
  expect(await asked).toMatchObject({ status: 503, body });
});
