import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect } from "vitest";
import { payloadOf, SCHEMA } from "../bench/workload.ts";
import { connect } from "../../src/client/client.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import type { MoveReport } from "../../src/store/move/move.ts";
import { sharedCluster } from "../support/postgres.ts";
import {
  type RunningProgram,
  runProgram,
  startCommand,
  startProgram,
  temporaryFolder,
} from "../support/program.ts";
import { until } from "../support/until.ts";
import { inLongForm, lengthOf, report } from "./length.ts";

// The promise under test: data are moved into a database and back with all their numbers; a move that is killed anywhere goes on
// where it was; nobody serves what is half moved; and publishing stops only for the last comparison.

const { events: EVENTS, kills: KILLS } = lengthOf("faults/move");
/** So many are published between the two moves that lead to one place. */
const MORE = 500;
const IN_A_BATCH = 1_000;
const LIMIT_MS = 3_600_000;

const folder = temporaryFolder();
const at = (name: string): string => join(folder.path, name);
const [data, back, node, backup] = [at("data"), at("back"), at("node"), at("backup.db")];
let url: string;
let client: Client;

beforeAll(async () => {
  for (const path of [data, node]) mkdirSync(path, { mode: 0o700 });
  const cluster = await sharedCluster();
  url = cluster.url(await cluster.newDatabase());
  client = new Client({ connectionString: url });
  await client.connect();
});

afterAll(async () => {
  await client?.end();
  folder.remove();
});

interface Serving {
  readonly server: RunningProgram;
  readonly evreg: Evreg;
  stop(): Promise<void>;
}

async function serve(place: string, flags: readonly string[] = []): Promise<Serving> {
  const server = await startProgram(place, ["--dev", ...flags]);
  const evreg = connect({ url: server.url });
  const stop = async (): Promise<void> => {
    await evreg.close();
    expect((await server.end("SIGTERM")).code).toBe(0);
  };
  return { server, evreg, stop };
}

async function publish({ evreg }: Serving, first: number, count: number): Promise<void> {
  for (let done = 0; done < count; done += IN_A_BATCH) {
    const events = Array.from({ length: Math.min(IN_A_BATCH, count - done) }, (_, n) => ({
      action: "order.created",
      payload: RawJson.fromText(payloadOf(first + done + n)),
    }));
    await evreg.events.publishBatch(events);
  }
}

/** What callers see: the registry as a file, and the newest and the oldest records. */
async function shownBy({ server, evreg }: Serving) {
  const registry = await runProgram(["export", "--url", server.url]);
  expect(registry).toMatchObject({ code: 0, stderr: "" });
  const newest = await evreg.events.list({ limit: 500 });
  const oldest = await evreg.events.list({ limit: 500, order: "asc" });
  const { data: deliveries } = await evreg.deliveries.list({ limit: 500 });
  const { data: audit } = await evreg.audit.list();
  const events = [...newest.data, ...oldest.data].map((event) => [event, event.payload?.text()]);
  return { registry: registry.stdout, events, total: newest.meta.total, deliveries, audit };
}

async function moved(from: string, to: string): Promise<MoveReport> {
  const { code, stdout, stderr } = await runProgram(["move", "--from", from, "--to", to, "--json"]);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { data: MoveReport }).data;
}

/** Starts a move, and kills it as soon as this much has arrived. */
async function killedMove(from: string, to: string, arrived: () => Promise<number>, least: number) {
  const { child, ended } = startCommand(["move", "--from", from, "--to", to]);
  const isThere = async (): Promise<boolean> => (await arrived().catch(() => 0)) >= least;
  await until("some of it to arrive", async () => child.exitCode !== null || (await isThere()), LIMIT_MS);
  child.kill("SIGKILL");
  await ended;
  expect(child.signalCode).toBe("SIGKILL");
}

async function expectUnfinished(flags: readonly string[]): Promise<void> {
  const refused = await runProgram(["serve", "--port", "0", ...flags]);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("has not ended") as string });
}

async function rowsInDatabase(): Promise<number> {
  const { rows } = await client.query<{ n: number }>("SELECT count(*)::int AS n FROM arriving_evreg.event");
  return rows[0]!.n;
}

function bytesInFolder(): Promise<number> {
  const sizes = ["evreg.db.arriving", "evreg.db.arriving-wal"].map(
    (name) => statSync(join(back, name), { throwIfNoEntry: false })?.size ?? 0,
  );
  return Promise.resolve(sizes[0]! + sizes[1]!);
}

inLongForm(
  "everything is moved there and back, whatever kills the moves",
  { timeout: LIMIT_MS },
  async () => {
    let serving = await serve(data);
    await serving.evreg.actions.create({ action: "order.created", application: "shop", schemata: SCHEMA });
    const names = { application: "billing", action: "order.created" };
    await serving.evreg.subscriptions.create({ ...names, subscription: "pulled", mode: "pull" });
    await publish(serving, 0, EVENTS);

    expect(await runProgram(["backup", backup, "--url", serving.server.url])).toMatchObject({ code: 0 });
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await killedMove(backup, url, rowsInDatabase, (EVENTS * kill) / (KILLS + 1));
      await expectUnfinished(["--data", node, "--database", url]);
    }
    const there = await moved(backup, url);
    expect(there).toMatchObject({ finished: false, events: EVENTS, deliveries: EVENTS });
    // What had arrived before the last kill was passed over.
    expect(there.changed).toBeLessThan(there.rows - EVENTS / 4);
    await expectUnfinished(["--data", node, "--database", url]);
    await publish(serving, EVENTS, MORE);
    const before = await shownBy(serving);
    await serving.stop();
    const rest = await moved(data, url);
    expect(rest).toMatchObject({ finished: true, events: EVENTS + MORE, deliveries: EVENTS + MORE });
    expect(rest.changed).toBeLessThan(3 * MORE);

    serving = await serve(node, ["--database", url]);
    expect(await shownBy(serving)).toEqual(before);
    await killedMove(url, back, bytesInFolder, 200 * EVENTS);
    await expectUnfinished(["--data", back]);
    const again = await moved(url, back);
    expect(again).toMatchObject({ finished: false, events: EVENTS + MORE });
    expect(again.changed).toBeLessThan(again.rows - EVENTS / 4);
    await serving.stop();
    const last = await moved(url, back);
    expect(last).toMatchObject({ finished: true, data_id: rest.data_id });
    const { events, deliveries } = rest;
    expect(last).toMatchObject({ events, deliveries });

    serving = await serve(back);
    expect(await shownBy(serving)).toEqual(before);
    await publish(serving, EVENTS + MORE, 1);
    const { data: newest } = await serving.evreg.events.list({ limit: 1 });
    expect(newest[0]!.rowid).toBe(EVENTS + MORE + 1);
    await serving.stop();
    report("move", {
      events: EVENTS,
      "there, the first time, ms": there.took_ms,
      "the rest ms": rest.took_ms,
      "back, the first time, ms": again.took_ms,
      "the last ms": last.took_ms,
    });
  },
);
