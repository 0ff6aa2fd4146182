import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openLocal, type RunningServer, startServer, type StartOptions } from "../../src/app/server.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import type { Finding } from "../../src/domain/operations.ts";
import { mintToken } from "../../src/domain/token-secret.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { SHARDS } from "../../src/store/rules/shards.ts";
import { KeptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { openReceiver } from "../support/open-receiver.ts";
import { type Cluster, sharedCluster } from "../support/postgres.ts";
import { temporaryFolder } from "../support/program.ts";
import { configFor } from "../support/server.ts";
import { until } from "../support/until.ts";
import { dataFolder, ORDER_PLACED, publish, refused, start, subscribed } from "./setup.ts";

// Several servers on one database.

const HOUR_MS = 3_600_000;
/** How often what is too old is removed. */
const ROUND_MS = 300_000;

let cluster: Cluster;
let database: string;

beforeAll(async () => {
  cluster = await sharedCluster();
});

function serve(options: Partial<StartOptions> = { dev: true }): Promise<RunningServer> {
  return start(dataFolder(), { database: { url: cluster.url(database) } }, options);
}

function rows<T extends object>(text: string): Promise<readonly T[]> {
  return cluster.query<T>(text, database);
}

/** Makes what another node would: its row, with a lease of an hour. */
async function addNode(id: string, { serves = 1, forSeconds = 3_600 } = {}): Promise<void> {
  await rows(
    `INSERT INTO evreg.node (id, owner, serves, until, seen)
     VALUES ('${id}', '{}', ${serves}, clock_timestamp() + interval '${forSeconds} s', 0)`,
  );
}

/** When the lease of the node that is no made-up one ends. */
async function leaseEnd(): Promise<number> {
  const text = "SELECT extract(epoch FROM until)::float8 AS seconds FROM evreg.node WHERE id <> 'other'";
  return (await rows<{ seconds: number }>(text))[0]!.seconds;
}

async function shardsOfEach(): Promise<readonly number[]> {
  const held = await rows<{ shards: number }>(
    "SELECT count(*)::int AS shards FROM evreg.shard WHERE node IS NOT NULL GROUP BY node ORDER BY 1",
  );
  return held.map(({ shards }) => shards);
}

function shared(...shards: readonly number[]): Promise<void> {
  return until(`the shards are shared as ${shards.join(", ")}`, async () => {
    return (await shardsOfEach()).join() === shards.join();
  });
}

async function settingsFinding({ evreg }: RunningServer): Promise<Finding | undefined> {
  return (await evreg.doctor()).data.find(({ check }) => check === "settings");
}

describe("several nodes", () => {
  beforeEach(async () => {
    database = await cluster.emptyStore();
  });

  test("share the subscriptions evenly, and take over those of one that stops", async () => {
    const one = await serve();
    await shared(SHARDS);
    const others = await Promise.all([serve(), serve()]);
    await shared(42, 43, 43);
    await one.stop();
    await shared(64, 64);
    for (const other of others) await other.stop();
    expect(await shardsOfEach()).toEqual([]);
  });

  test("keep no shard free for one that is silent, and likely dead", async () => {
    await (await serve()).stop();
    await addNode("silent", { forSeconds: 6.5 });
    await serve();
    await shared(SHARDS);
    expect(
      await rows("SELECT id FROM evreg.node WHERE ended IS NOT NULL OR until < clock_timestamp()"),
    ).toEqual([]);
  });

  test("take over from one that is dead, also what it had under way", async () => {
    const node = await serve();
    await shared(SHARDS);
    const receiver = await subscribed(node, 1);
    // As after a SIGKILL: it has the shards and a delivery, and beats no more.
    await addNode("dead");
    await cluster.run(
      "UPDATE evreg.shard SET node = 'dead'; UPDATE evreg.turn SET epoch = epoch + 1",
      database,
    );
    await publish(node, 1);
    await cluster.run(
      "INSERT INTO evreg.lease (delivery_id, claim_id, claimed_ms, until_ms) VALUES (1, 1, 1, 9000000000000)",
      database,
    );
    expect(receiver.requests).toHaveLength(0);
    await rows("UPDATE evreg.node SET until = clock_timestamp() WHERE id = 'dead'");
    await receiver.received(1);
    expect(receiver.requests[0]!.headers["webhook-attempt"] ?? "2").toBe("2");
  });

  test("answer a change of what others keep in memory once all have seen it, and all else at once", async () => {
    const node = await serve();
    const { evreg } = node;
    await subscribed(node, 3);
    const { rowid: token } = (await evreg.tokens.create({ name: "ci", scopes: ["read"] })).data;
    await addNode("silent", { serves: 0 });
    const answered: string[] = [];
    const changes = [
      evreg.subscriptions.update(1, { active: false }).then(() => answered.push("update")),
      evreg.subscriptions.rotateSecret(2).then(() => answered.push("rotate")),
      evreg.subscriptions.delete(3).then(() => answered.push("delete")),
      evreg.actions.update("order.placed", { retired: true }).then(() => answered.push("retire")),
      evreg.tokens.revoke(token).then(() => answered.push("revoke")),
    ];
    await until("all is changed", async () => {
      const [left] = await rows<{ n: number }>(
        `SELECT ((SELECT count(*) FROM evreg.subscription WHERE active = 1 AND deleted_ms IS NULL)
          + (SELECT count(*) FROM evreg.subscription_secret WHERE previous_secret IS NULL)
          + (SELECT count(*) FROM evreg.action WHERE action = 'order.placed' AND retired_ms IS NULL)
          + (SELECT count(*) FROM evreg.token WHERE name = 'ci'))::int AS n`,
      );
      return left!.n === 2;
    });
    await evreg.actions.create({ action: "order.paid", application: "shop", schemata: {} });
    await evreg.events.publish({ action: "order.paid", payload: RawJson.fromValue({}) });
    await evreg.tokens.create({ name: "other", scopes: ["read"] });
    expect(answered).toEqual([]);
    await rows("DELETE FROM evreg.node WHERE id = 'silent'");
    await Promise.all(changes);
  });

  test("stay alive for others while they wait for their turn to share", async () => {
    await serve();
    await shared(SHARDS);
    const holder = new Client({ connectionString: cluster.url(database) });
    await holder.connect();
    await holder.query("BEGIN; SELECT FROM evreg.turn FOR UPDATE");
    // One has come, so the other one wants to share, and has to wait.
    await addNode("other");
    await until("it waits for its turn", async () => {
      const waiting = await rows<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      return waiting.length > 0;
    });
    const before = await leaseEnd();
    await until("it renews its lease", async () => (await leaseEnd()) > before, 10_000);
    await holder.query("DELETE FROM evreg.node WHERE id = 'other'");
    await holder.end();
  });

  test("refuse one with another key, and one on the data folder of another", async () => {
    const one = await serve();
    const encryption = { key: Buffer.alloc(32, 1).toString("base64") };
    const own = { url: cluster.url(database) };
    await refused(
      start(dataFolder(), { database: own, encryption }, { dev: true }),
      "conflict",
      "Stop all of them, and start them with this key",
    );
    await one.stop();
    // Alone, it may.
    const place = dataFolder();
    await start(place, { database: own, encryption }, { dev: true });
    await refused(
      start(place, { database: own, encryption }, { dev: true }),
      "conflict",
      "Name another folder for this one with --data",
    );
  });

  test("say which of their settings differ, and no secret, and remove nothing for one that is not alike", async () => {
    const secrets = {
      auth: { bootstrapToken: mintToken((length) => Buffer.alloc(length, 1)) },
      encryption: { key: Buffer.alloc(32, 1).toString("base64") },
    };
    const own = { database: { url: cluster.url(database) }, ...secrets };
    const clock = new ManualClock(Date.now());
    const logger = new KeptLog();
    const differences = () => logger.with("different settings").map(({ message }) => message);
    const removing = await start(dataFolder(), { ...own, retention: { events: HOUR_MS } }, { clock, logger });
    await shared(SHARDS);
    expect(differences()).toEqual([]);
    // Without a time of its own it keeps them for good. The first one goes on doing what is to be done once.
    const keeping = await start(dataFolder(), own, { logger });
    await shared(64, 64);
    const found = expect.stringMatching(/different settings: retention\.events\./) as string;
    expect(differences()).toEqual([found]);
    for (const node of [removing, keeping]) {
      expect(await settingsFinding(node)).toMatchObject({ status: "warning", found });
    }
    const stored = (await rows<{ owner: string }>("SELECT owner FROM evreg.node")).map(({ owner }) => owner);
    for (const secret of [secrets.auth.bootstrapToken, secrets.encryption.key, database]) {
      expect(stored.join()).not.toContain(secret);
    }

    const past = await openLocal({
      config: configFor(dataFolder(), own),
      version: "1",
      logger: silentLogger,
      command: "publish",
      clock: new ManualClock(Date.now() - 2 * HOUR_MS),
    });
    await past.actions.create(ORDER_PLACED);
    await past.events.publish({ action: "order.placed", payload: RawJson.fromText('{"id":"old"}') });
    await past.close();
    const total = async (): Promise<number> => (await removing.evreg.events.list()).meta.total;
    const line = "Nothing is removed for retention.events while the nodes have different values of it.";
    await until("it to say so", async () => {
      await clock.advance(ROUND_MS);
      return logger.with(line).length > 0;
    });
    expect(await total()).toBe(1);
    await keeping.stop();
    expect(await settingsFinding(removing)).toMatchObject({ status: "ok" });
    await until("the event to be gone", async () => {
      await clock.advance(ROUND_MS);
      return (await total()) === 0;
    });
  });

  test("work without prepared statements, as behind a pooler", async () => {
    const node = await start(
      dataFolder(),
      { database: { url: `${cluster.url(database)}?prepare=false` } },
      { dev: true },
    );
    const receiver = await subscribed(node, 2);
    for (const id of [1, 2]) expect((await publish(node, id)).status).toBe(201);
    await receiver.received(4);
  });
});

describe("two nodes that go on", () => {
  const folder = temporaryFolder();
  let nodes: readonly [RunningServer, RunningServer];

  function startNode(name: string): Promise<RunningServer> {
    const config = configFor(join(folder.path, name), { database: { url: cluster.url(database) } });
    return startServer({ config, dev: true, version: "1.2.3", logger: silentLogger });
  }

  beforeAll(async () => {
    database = await cluster.emptyStore();
    nodes = [await startNode("one"), await startNode("two")];
    await shared(64, 64);
  });
  afterAll(async () => {
    for (const node of nodes) await node.stop();
    folder.remove();
  });

  test("stream what happens at any of them", async () => {
    const action = "order.streamed";
    await subscribed(nodes[0], 4, action);
    const stream = await nodes[1].evreg.stream({ topics: ["events", "deliveries"] });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { type } of stream) seen.push(type);
    })();
    await until("the stream has everything", () => Promise.resolve(seen.includes("ready")));
    for (const id of [1, 2, 3]) await publish(nodes[0], id, action);
    const counts = (): object =>
      Object.fromEntries(
        ["event", "delivery"].map((type) => [type, seen.filter((one) => one === type).length]),
      );
    await expect.poll(counts, { timeout: 30_000 }).toMatchObject({ event: 3, delivery: 12 });
    expect(seen).not.toContain("gap");
    await stream.close();
    await reading;
  });

  test("send each event once, whoever took it, and all lists are the same", async () => {
    const action = "order.sent";
    const receiver = await subscribed(nodes[0], 6, action);
    for (const id of [1, 2, 3, 4]) expect((await publish(nodes[id % 2]!, id, action)).status).toBe(201);
    await receiver.received(24);
    for (const { evreg } of nodes) {
      await until("all are delivered", async () => {
        return (await evreg.deliveries.list({ action, status: "delivered", limit: 100 })).data.length === 24;
      });
      const numbers = (await evreg.events.list({ action })).data.map(({ rowid }) => rowid);
      const first = numbers.at(-1)!;
      expect(numbers).toEqual([first + 3, first + 2, first + 1, first]);
    }
    expect(receiver.requests).toHaveLength(24);
  });

  test("validate by a schema that another one has changed", async () => {
    const action = "order.checked";
    await subscribed(nodes[0], 1, action);
    expect((await publish(nodes[1], 1, action)).status).toBe(201);
    const schemata = { type: "object", required: ["total"] };
    await nodes[0].evreg.actions.update(action, { schemata }, { compatibility: "none" });
    expect((await publish(nodes[1], 2, action)).status).toBe(422);
    await nodes[0].evreg.actions.update(action, { retired: true });
    expect((await publish(nodes[1], 3, action)).status).toBe(410);
  });

  test("refuse a token once its revocation is answered, whichever node did that", async () => {
    const made = (await nodes[0].evreg.tokens.create({ name: "ci", scopes: ["read"] })).data;
    const ask = (server: RunningServer): Promise<Response> =>
      fetch(`${server.url}/v1/events`, { headers: { authorization: `Bearer ${made.token}` } });
    for (const node of nodes) expect((await ask(node)).status).toBe(200);
    await nodes[0].evreg.tokens.revoke(made.rowid);
    for (const node of nodes) expect((await ask(node)).status).toBe(401);
  });

  test("run a replay at the node that has its subscription", async () => {
    const action = "order.replayed";
    const receiver = await subscribed(nodes[0], 2, action);
    for (const id of [1, 2, 3]) await publish(nodes[0], id, action);
    await receiver.received(6);
    for (const { rowid } of (await nodes[0].evreg.subscriptions.list({ action })).data) {
      await nodes[0].evreg.replays.start(rowid, { status: "all", from: new Date(0).toISOString() });
    }
    await receiver.received(12);
  });

  test("stop sending what was paused, and know a new handler, before the change is answered", async () => {
    const action = "order.paused";
    // Of subscriptions that follow each other, one at least belongs to each node.
    const receiver = await subscribed(nodes[0], 4, action);
    const { data } = await nodes[0].evreg.subscriptions.list({ action });
    for (const { rowid } of data) {
      await nodes[0].evreg.subscriptions.update(rowid, { rate_limit: 2 });
    }
    for (let id = 1; id <= 40; id += 1) await publish(nodes[0], id, action);
    await receiver.received(8);
    for (const { rowid } of data)
      await nodes[rowid % 2]!.evreg.subscriptions.update(rowid, { active: false });
    // What has begun by the answer may still arrive.
    const begun = (await rows<{ n: number }>("SELECT count(*)::int AS n FROM evreg.lease"))[0]!.n;
    const sent = receiver.requests.length;
    await until("nothing is under way", async () => {
      return (await rows<{ n: number }>("SELECT count(*)::int AS n FROM evreg.lease"))[0]!.n === 0;
    });
    expect(receiver.requests.length).toBeLessThanOrEqual(sent + begun);
    const other = await openReceiver();
    for (const { rowid } of data) {
      await nodes[0].evreg.subscriptions.update(rowid, { active: true, handler: other.url });
    }
    const before = receiver.requests.length;
    await other.received(8);
    expect(receiver.requests.length).toBe(before);
  });
});
