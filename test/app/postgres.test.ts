import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import type { RunningServer } from "../../src/app/server.ts";
import type { EvregError } from "../../src/domain/error.ts";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { FORM, NEWEST_FORM } from "../../src/store/postgres/tables.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "../store/owner.ts";
import { newAction } from "../store/opened-store.ts";
import { type Cluster, sharedCluster } from "../support/postgres.ts";
import { post } from "../support/post.ts";
import { until } from "../support/until.ts";
import { dataFolder, publish, refused, start, subscribed } from "./setup.ts";

// A server whose data are in PostgreSQL, and what happens when that goes away.

let cluster: Cluster;

beforeAll(async () => {
  cluster = await sharedCluster();
});

function serve(url: string, onFatal?: (error: EvregError) => void): Promise<RunningServer> {
  return start(
    dataFolder(),
    { database: { url } },
    { dev: true, ...(onFatal === undefined ? {} : { onFatal }) },
  );
}

describe("a server on PostgreSQL", () => {
  test("publishes, delivers by a filter that has U+0000, and finds everything again after a restart", async () => {
    const url = cluster.url(await cluster.emptyStore());
    const first = await serve(url);
    const receiver = await subscribed(first);
    const filter = { not: { properties: { id: { const: "\u0000" } } } };
    await first.evreg.subscriptions.update(1, { filter });
    for (const id of [1, 2, 3]) expect((await publish(first, id)).status).toBe(201);
    await receiver.received(3);
    await first.stop();

    const second = await serve(url);
    const { data } = await second.evreg.events.list();
    expect(data.map(({ rowid }) => rowid)).toEqual([3, 2, 1]);
    await until("all are delivered", async () => {
      const all = await second.evreg.deliveries.list({ status: "delivered" });
      return all.data.length === 3;
    });
    expect((await publish(second, 4)).status).toBe(201);
    await receiver.received(4);
  });

  test("refuses a database that is not there, and a server that nobody runs", async () => {
    await refused(serve(cluster.url("nowhere")), "usage", "there is no such database");
    await refused(serve("postgres://postgres@127.0.0.1:1/evreg"), "unavailable", "cannot be reached");
  });

  test("writes no more once an older copy of the database has taken its place, and ends", async () => {
    const name = await cluster.emptyStore();
    const ended = Promise.withResolvers<EvregError>();
    const server = await serve(cluster.url(name), ended.resolve);
    await server.evreg.actions.create({ action: "order.placed", application: "shop", schemata: {} });
    await cluster.run("UPDATE evreg.writer SET writes = writes - 1", name);
    expect((await publish(server, 1)).status).toBe(503);
    expect((await ended.promise).message).toContain("lacks what was acknowledged");
  });

  test("starts twice at once on an empty database", async () => {
    const url = cluster.url(await cluster.newDatabase());
    const [one, other] = await Promise.all([serve(url), serve(url)]);
    await one.evreg.actions.create({ action: "order.placed", application: "shop", schemata: {} });
    expect((await other.evreg.actions.list()).data.map(({ action }) => action)).toContain("order.placed");
  });

  test("works on no tables that it does not know, and changes none that others could not follow", async () => {
    const name = await cluster.emptyStore();
    const ended = Promise.withResolvers<EvregError>();
    const url = cluster.url(name);
    await serve(url, ended.resolve);
    await cluster.run(`UPDATE evreg.turn SET form = ${NEWEST_FORM + 1}`, name);
    // It writes now and then by itself.
    expect((await ended.promise).message).toContain("a newer evreg has changed the tables");
    const message = expect.stringContaining(`knows them up to form ${NEWEST_FORM}.`) as string;
    await expect(serve(url)).rejects.toMatchObject({ code: "usage", message });

    await cluster.run(
      `UPDATE evreg.turn SET form = ${FORM - 1};
       INSERT INTO evreg.node (id, owner, serves, until, seen)
         VALUES ('old', '{"version": "0.1.0", "newest_form": ${FORM - 1}}', 1, clock_timestamp() + interval '1 h', 0)`,
      name,
    );
    const other = "Nodes of version 0.1.0 have the database, which do not know the tables of this evreg";
    await expect(serve(url)).rejects.toMatchObject({ message: expect.stringContaining(other) as string });
  });

  test("refuses a database that cannot hold each text", async () => {
    await cluster.run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'");
    await refused(serve(cluster.url("latin")), "usage", "ENCODING 'UTF8'");
  });

  test("answers 503 while the database is away, and goes on by itself with all that was acknowledged", async () => {
    const server = await serve(cluster.url(await cluster.emptyStore()));
    const receiver = await subscribed(server);
    const acknowledged: number[] = [];
    const tryToPublish = async (id: number): Promise<number> => {
      const response = await publish(server, id);
      await response.arrayBuffer();
      if (response.status === 201) acknowledged.push(id);
      else expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
      return response.status;
    };
    expect(await tryToPublish(1)).toBe(201);
    // Nothing of it has been read before.
    const action = "order.paid";
    await server.evreg.actions.create({ action, application: "shop", schemata: { type: "object" } });
    const events = [
      { action, payload: { id: 1 } },
      { action, payload: 1 },
    ];
    const publishBatch = (): Promise<Response> => post(`${server.url}/v1/events/batch`, { events });
    for (let round = 0; round < 2; round += 1) {
      await cluster.crash();
      expect(await tryToPublish(10 + round)).toBe(503);
      const answer = await publishBatch();
      expect(answer.status).toBe(503);
      expect(answer.headers.get("retry-after")).toMatch(/^\d+$/);
      expect(await answer.json()).toMatchObject({ code: 503, details: { stored: false } });
      await cluster.start();
      await until(
        "it takes events again",
        async () => (await tryToPublish(20 + acknowledged.length)) === 201,
      );
    }
    expect((await publishBatch()).status).toBe(207);
    const ids = (): number[] =>
      receiver.requests.map(
        ({ body }) => (JSON.parse(body.toString()) as { payload: { id: number } }).payload.id,
      );
    await until("all that was acknowledged is delivered", () =>
      acknowledged.every((id) => ids().includes(id)),
    );
  });
});

describe("a commit whose answer is lost", () => {
  let store: Store | undefined;
  let proxy: Server | undefined;
  afterEach(async () => {
    await store?.close();
    proxy?.close();
  });

  /** Passes everything on, and cuts the connection at the next commit that `cut` names, before or after it has gone on. */
  async function behindProxy(name: string): Promise<{ cutAtCommit(when: "before" | "after"): void }> {
    let cut: "before" | "after" | undefined;
    const target = new URL(cluster.url(name));
    const port = Number(target.port);
    proxy = createServer((client: Socket) => {
      const server = connect(port, target.hostname);
      for (const socket of [client, server]) socket.on("error", () => socket.destroy());
      client.on("close", () => server.destroy());
      server.on("close", () => client.destroy());
      server.on("data", (bytes) => client.write(bytes));
      client.on("data", (bytes) => {
        const when = bytes.includes("COMMIT") ? cut : undefined;
        if (when !== undefined) cut = undefined;
        if (when === "before") {
          client.destroy();
          return;
        }
        if (when === "after") {
          server.removeAllListeners("data");
          // The database has done it once it answers, which nobody hears.
          server.once("data", () => client.destroy());
        }
        server.write(bytes);
      });
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => proxy!.once("listening", resolve));
    target.port = String((proxy.address() as AddressInfo).port);
    store = await openPostgresStore({ url: target.href, owner: testOwner() });
    return { cutAtCommit: (when) => (cut = when) };
  }

  test("is asked for: what was committed is acknowledged, once", async () => {
    const link = await behindProxy(await cluster.emptyStore());
    link.cutAtCommit("after");
    const action = await newAction(store!, "order.placed");
    expect(action).toMatchObject({ action: "order.placed" });
    expect((await store!.catalog.listActions({})).map(({ action: name }) => name)).toContain("order.placed");
  });

  test("is asked for: what was not committed is refused, and nothing of it is stored", async () => {
    const link = await behindProxy(await cluster.emptyStore());
    link.cutAtCommit("before");
    await expect(newAction(store!, "order.placed")).rejects.toMatchObject({
      code: "unavailable",
      details: { stored: false },
    });
    await until("it takes writes again", () => store!.health().status === "ok");
    expect(await newAction(store!, "order.placed")).toMatchObject({ action: "order.placed" });
  });
});
