import { connect as connectSocket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { startHarness, type Harness } from "./harness.ts";

let harness: Harness;
let slow: Promise<void> = Promise.resolve();
let begun = Promise.withResolvers<AbortSignal | undefined>();

beforeAll(async () => {
  harness = await startHarness({
    http: { idleTimeoutMs: 40, checkEveryMs: 10 },
    around: (service) => ({
      authenticate: (token) => service.authenticate(token),
      as(principal) {
        const evreg = service.as(principal);
        return {
          ...evreg,
          backup(signal) {
            begun.resolve(signal);
            return slow.then(() => evreg.backup(signal));
          },
        };
      },
    }),
  });
});
afterAll(() => harness.close());

const get = async (method = "GET"): Promise<Response> =>
  fetch(`${harness.url}/v1/backup`, {
    method,
    headers: { authorization: `Bearer ${await harness.token("admin")}` },
  });

test("a backup says what it is, and leaves a line in the log", async () => {
  const response = await get();
  const bytes = await response.arrayBuffer();
  expect(response.status).toBe(200);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "application/vnd.sqlite3",
    "content-length": String(bytes.byteLength),
    "content-disposition": 'attachment; filename="evreg-backup.db"',
    "cache-control": "no-store",
    "repr-digest": expect.stringMatching(/^sha-256=:[A-Za-z0-9+/]{43}=:$/),
  });
  expect(harness.log).toContainEqual(
    expect.objectContaining({ level: "info", fields: expect.objectContaining({ path: "/v1/backup" }) }),
  );
});

test("its connection is kept while it is made, where an idle one is cut", async () => {
  const made = Promise.withResolvers<void>();
  slow = made.promise;
  const asked = get();
  // A connection that is as old by then, on which nothing is asked, has been cut when this ends.
  for (let round = 0; round < 3; round += 1) {
    const idle = connectSocket(harness.port, "127.0.0.1");
    await new Promise((resolve) => idle.on("error", resolve).on("close", resolve));
  }
  made.resolve();
  const response = await asked;
  expect(response.status).toBe(200);
  await response.arrayBuffer();
});

test("HEAD tells its length and makes the next one possible", async () => {
  const response = await get("HEAD");
  expect(Number(response.headers.get("content-length"))).toBeGreaterThan(0);
  expect(await response.text()).toBe("");
  let status = 409;
  while (status === 409) {
    const next = await get();
    ({ status } = next);
    await next.arrayBuffer();
  }
  expect(status).toBe(200);
});

test("a caller who leaves while it is made is no failure of the server's", async () => {
  const made = Promise.withResolvers<void>();
  slow = made.promise;
  begun = Promise.withResolvers();
  const leaving = new AbortController();
  const token = await harness.token("admin");
  const headers = { authorization: `Bearer ${token}` };
  const asked = fetch(`${harness.url}/v1/backup`, { headers, signal: leaving.signal });
  const gone = await begun.promise;
  const before = harness.log.length;
  leaving.abort();
  await expect(asked).rejects.toThrow();
  await until("the server to hear of it", () => gone?.aborted === true);
  made.resolve();
  await until("the request's line", () =>
    harness.log.slice(before).some(({ fields }) => fields["path"] === "/v1/backup"),
  );
  expect(harness.log.slice(before)).toMatchObject([{ level: "info", fields: { status: 499 } }]);
  slow = Promise.resolve();
});
