import { createClient } from "@libsql/client";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startProgram, temporaryFolder, type RunningProgram } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";

// The promise under test: what was answered 201 is never lost, and nothing is stored twice, however the process dies.

/** `KILLS=20 npx vitest run test/e2e/kill.test.ts` for the long form. */
const kills = Number(process.env["KILLS"] ?? 5);
const folder = temporaryFolder();
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  // A handler that fails now and then, so that retries are under way when the process dies.
  let count = 0;
  receiver.answer = () => ({ status: (count += 1) % 7 === 0 ? 500 : 200 });
});

afterAll(async () => {
  await receiver?.close();
  folder.remove();
});

test(
  `kill -9 under load, ${kills} times: acknowledged events are stored once and delivered`,
  { timeout: 30_000 + kills * 5_000 },
  async () => {
    const acknowledged = new Map<number, number>();
    let next = 0;
    for (let round = 0; round < kills; round += 1) {
      const server = await startProgram(folder.path, ["--dev"]);
      if (round === 0) await register(server.url);
      const before = acknowledged.size;
      const load = Array.from({ length: 8 }, () =>
        publishUntilDown(server.url, () => (next += 1), acknowledged),
      );
      // Between 40 and 200 acknowledged events into the round: another moment each time, without a clock.
      await until("events are acknowledged", () => acknowledged.size - before >= 40 + ((round * 53) % 160));
      await server.end("SIGKILL");
      await Promise.all(load);
    }

    const server = await startProgram(folder.path, ["--dev"]);
    const stored = await allEvents(server.url);
    await until("every delivery came to its end", async () => (await unfinished(server)) === 0, 60_000);
    const delivered = new Set(
      receiver.requests.map(({ body }) => Number(JSON.parse(body.toString()).event_id)),
    );
    expect((await server.end("SIGTERM")).code).toBe(0);

    const byNumber = new Map(stored.map(({ rowid, payload }) => [payload.n, rowid]));
    expect(byNumber.size, "no event is stored twice").toBe(stored.length);
    for (const [number, rowid] of acknowledged) {
      expect(byNumber.get(number), `event ${number}, answered 201`).toBe(rowid);
      expect(delivered.has(rowid), `event ${number} was delivered`).toBe(true);
    }
    expect(await integrity()).toBe("ok");
  },
);

async function register(url: string): Promise<void> {
  await post(`${url}/v1/actions`, {
    action: "load.sent",
    application: "load",
    schemata: { type: "object", required: ["n"], properties: { n: { type: "integer" } } },
  });
  await post(`${url}/v1/subscriptions`, {
    application: "load",
    subscription: "all",
    action: "load.sent",
    handler: receiver.url,
    max_retries: 10,
  });
}

async function publishUntilDown(
  url: string,
  number: () => number,
  acknowledged: Map<number, number>,
): Promise<void> {
  for (;;) {
    const n = number();
    try {
      const { data } = await post(`${url}/v1/events`, { action: "load.sent", payload: { n } });
      acknowledged.set(n, data.rowid);
    } catch (error) {
      // The connection broke with the process; whether this one was stored is open, and either is right.
      if (error instanceof TypeError) return;
      throw error;
    }
  }
}

async function post(url: string, body: unknown): Promise<{ data: any }> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== 201) throw new Error(`${url} answered ${response.status}: ${text}`);
  return JSON.parse(text) as { data: any };
}

async function allEvents(url: string): Promise<{ rowid: number; payload: { n: number } }[]> {
  const events = [];
  for (let after = 0; ;) {
    const response = await fetch(`${url}/v1/events?order=asc&limit=500&after=${after}`);
    const { data } = (await response.json()) as { data: { rowid: number; payload: { n: number } }[] };
    if (data.length === 0) return events;
    events.push(...data);
    after = data.at(-1)?.rowid ?? 0;
  }
}

async function unfinished(server: RunningProgram): Promise<number> {
  let count = 0;
  for (const status of ["pending", "delivering", "waiting"]) {
    const response = await fetch(`${server.url}/v1/deliveries?limit=1&status=${status}`);
    count += ((await response.json()) as { data: unknown[] }).data.length;
  }
  return count;
}

async function integrity(): Promise<unknown> {
  const client = createClient({ url: `file:${join(folder.path, "evreg.db")}` });
  const { rows } = await client.execute("PRAGMA integrity_check");
  client.close();
  return rows[0]?.[0];
}
