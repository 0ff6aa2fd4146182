import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "../../../src/client/client.ts";
import type { Evreg } from "../../../src/evreg.ts";
import { RawJson } from "../../../src/json/raw-json.ts";
import { readTokenFile } from "../../../src/runtime/find-server.ts";
import { temporaryFolder } from "../../support/program.ts";
import { serveHere } from "../../support/server.ts";
import { until } from "../../support/until.ts";

/** Nothing listens there, so each attempt fails at once and in the same words. */
const HANDLER = "http://127.0.0.1:9/hook";
const HOUR_MS = 3_600_000;
/** As many runs of a command find something of their own to change. */
const RUNS = 3;

const SCHEMA = {
  type: "object",
  properties: { id: { type: "integer" } },
  required: ["id"],
};

/** What commands act on: a server, and a data folder with the same in it that no server has. */
export interface World {
  readonly folder: string;
  readonly url: string;
  readonly token: string;
  /** The data folder without a server. */
  readonly local: string;
  /** A backup of it. */
  readonly backup: string;
  readonly found: Found;
  close(): Promise<void>;
}

/** Rowids, of `RUNS` records each. */
interface Found {
  readonly failed: readonly number[];
  /** What no run changes. */
  readonly quiet: { readonly event: number; readonly delivery: number };
  readonly waiting: readonly number[];
  readonly paused: readonly number[];
  readonly replayable: readonly number[];
  readonly replays: readonly number[];
  readonly tokens: readonly number[];
}

export async function createWorld(): Promise<World> {
  const folder = temporaryFolder();
  const data = join(folder.path, "served");
  const local = join(folder.path, "local");
  const backup = join(folder.path, "backup.db");
  for (const path of [data, local]) mkdirSync(path, { mode: 0o700 });
  const delivery = { allowHttp: true, allowNetworks: ["127.0.0.1/32"] };
  const server = await serveHere(data, { changes: { delivery } });
  const { url } = server;
  const token = readTokenFile(data, undefined) ?? "none";
  const evreg = connect({ url, token });
  const found = await fill(evreg);
  writeFileSync(join(folder.path, "schema.json"), JSON.stringify(SCHEMA));
  const made = await evreg.backup();
  const pieces: Uint8Array[] = [];
  for await (const piece of made.content()) pieces.push(piece);
  await made.close();
  for (const path of [backup, join(local, "evreg.db")]) {
    writeFileSync(path, Buffer.concat(pieces), { mode: 0o600 });
  }
  return {
    folder: folder.path,
    url,
    token,
    local,
    backup,
    found,
    async close() {
      await evreg.close();
      await server.stop();
      folder.remove();
    },
  };
}

async function fill(evreg: Evreg): Promise<Found> {
  const runs = Array.from({ length: RUNS }, (_, run) => run);
  const action = async (name: string, application = "shop") =>
    evreg.actions.create({ action: name, application, schemata: SCHEMA });
  await action("order.created");
  const schemata = { ...SCHEMA, properties: { ...SCHEMA.properties, note: { type: "string" } } };
  await evreg.actions.update("order.created", { schemata });
  await action("order.paid", "bank");
  for (const run of runs) await action(`order.changed${run}`, "changing");

  const subscribe = async (subscription: string, more: object) =>
    (
      await evreg.subscriptions.create({
        application: "billing",
        subscription,
        action: "order.created",
        handler: HANDLER,
        ...more,
      })
    ).data.rowid;
  const failing = await subscribe("failing", { max_retries: 0 });
  const retrying = await subscribe("retrying", { max_retries: 1, retry_schedule: [HOUR_MS] });
  const publish = async (id: number) => {
    const payload = RawJson.fromValue({ id });
    return (await evreg.events.publish({ action: "order.created", payload })).data.rowid;
  };
  for (const run of runs) await publish(run);
  const quiet = await publish(RUNS);
  const of = async (subscription: number, status: "failed" | "waiting"): Promise<number[]> =>
    (await evreg.deliveries.list({ subscription, status })).data
      .map(({ rowid }) => rowid)
      .toSorted(ascending);
  await until("all attempts are over", async () => {
    const [failed, waiting] = await Promise.all([of(failing, "failed"), of(retrying, "waiting")]);
    return failed.length + waiting.length === 2 * (RUNS + 1);
  });

  const changing = { application: "changing", active: false };
  const [paused, replayable, replays, tokens]: number[][] = [[], [], [], []];
  for (const run of runs) {
    paused!.push(await subscribe(`paused${run}`, { ...changing, action: "order.paid" }));
    replayable!.push(await subscribe(`replayable${run}`, changing));
    const replayed = await subscribe(`replayed${run}`, changing);
    // Of a paused subscription, so that it lasts.
    const { data } = await evreg.replays.start(replayed, { from: "2020-01-01T00:00:00Z", status: "missed" });
    replays!.push(data.rowid);
    tokens!.push((await evreg.tokens.create({ name: `token${run}`, scopes: ["read"] })).data.rowid);
  }
  await until("the replays are counted", async () =>
    (await evreg.replays.list()).data.every(({ total }) => total !== null),
  );
  const lists = { paused: paused!, replayable: replayable!, replays: replays!, tokens: tokens! };
  const [failed, waiting] = await Promise.all([of(failing, "failed"), of(retrying, "waiting")]);
  return { failed, waiting, quiet: { event: quiet, delivery: failed[RUNS]! }, ...lists };
}

function ascending(one: number, other: number): number {
  return one - other;
}
