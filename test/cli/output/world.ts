import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "../../../src/client/client.ts";
import type { Evreg } from "../../../src/evreg.ts";
import { readTokenFile } from "../../../src/runtime/find-server.ts";
import { temporaryFolder } from "../../support/program.ts";
import { deliveriesOf, publish, register, subscribe } from "../../support/records.ts";
import { serveHere } from "../../support/server.ts";
import { until } from "../../support/until.ts";

const HOUR_MS = 3_600_000;
/** As many runs of a command find something of their own to change. */
const RUNS = 3;

const SCHEMA = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };

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

/** Nobody listens at the handlers, so each attempt fails at once and in the same words. */
async function fill(evreg: Evreg): Promise<Found> {
  const runs = Array.from({ length: RUNS }, (_, run) => run);
  await register(evreg, "order.created", SCHEMA);
  const schemata = { ...SCHEMA, properties: { ...SCHEMA.properties, note: { type: "string" } } };
  await evreg.actions.update("order.created", { schemata });
  await evreg.actions.create({ action: "order.paid", application: "bank", schemata: SCHEMA });
  for (const run of runs)
    await evreg.actions.create({ action: `order.changed${run}`, application: "changing", schemata: SCHEMA });

  const failing = await subscribe(evreg, "failing", { max_retries: 0 });
  const retrying = await subscribe(evreg, "retrying", { max_retries: 1, retry_schedule: [HOUR_MS] });
  let quiet = 0;
  for (const id of [...runs, RUNS]) quiet = (await publish(evreg, "order.created", `{"id":${id}}`)).rowid;
  const idsOf = async (subscription: number, status: "failed" | "waiting"): Promise<number[]> => {
    const found = await deliveriesOf(evreg, { subscription, status }, RUNS + 1);
    return found.map(({ rowid }) => rowid).toSorted((one, other) => one - other);
  };
  const [failed, waiting] = [await idsOf(failing.rowid, "failed"), await idsOf(retrying.rowid, "waiting")];

  const changing = { application: "changing", active: false };
  const lists: Record<"paused" | "replayable" | "replays" | "tokens", number[]> = {
    paused: [],
    replayable: [],
    replays: [],
    tokens: [],
  };
  for (const run of runs) {
    const paused = await subscribe(evreg, `paused${run}`, { ...changing, action: "order.paid" });
    lists.paused.push(paused.rowid);
    lists.replayable.push((await subscribe(evreg, `replayable${run}`, changing)).rowid);
    // Of a paused subscription, so that it lasts.
    const { rowid } = await subscribe(evreg, `replayed${run}`, changing);
    const { data } = await evreg.replays.start(rowid, { from: "2020-01-01T00:00:00Z", status: "missed" });
    lists.replays.push(data.rowid);
    lists.tokens.push((await evreg.tokens.create({ name: `token${run}`, scopes: ["read"] })).data.rowid);
  }
  await until("the replays are counted", async () =>
    (await evreg.replays.list()).data.every(({ total }) => total !== null),
  );
  return { failed, waiting, quiet: { event: quiet, delivery: failed[RUNS]! }, ...lists };
}
