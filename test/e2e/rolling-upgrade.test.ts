import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { mintToken } from "../../src/domain/token-secret.ts";
import { FORM } from "../../src/store/postgres/tables.ts";
import { inLongForm, lengthOf } from "../faults/length.ts";
import { type Cluster, sharedCluster } from "../support/postgres.ts";
import { copyOfBuild, type RunningProgram, startProgram, temporaryFolder } from "../support/program.ts";
import { post } from "../support/post.ts";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";

// Nodes of two versions on one database. The newer ones are this build with tables of a later form.

const ACTION = "order.placed";
const { subscriptions: SUBSCRIPTIONS, publishers: WORKERS, ...LENGTH } = lengthOf("e2e/rolling-upgrade");
/** So many are published before, between and after all that is done. */
const EVENTS_EACH = LENGTH["events each"];
const LONGEST_MS = 600_000;
/** As a proxy does, the publisher leaves out a node that refused, for so long. */
const LEFT_OUT_MS = 5_000;
const TOKEN = mintToken(randomBytes);

const folder = temporaryFolder();
let cluster: Cluster;
const started: RunningProgram[] = [];
let database: string;
/** What starts the builds of the next form, and of the one after. */
let next: readonly string[];
let last: readonly string[];

beforeAll(async () => {
  cluster = await sharedCluster();
  next = buildOf(FORM + 1);
  last = buildOf(FORM + 2);
});
beforeEach(async () => {
  database = await cluster.newDatabase();
});
afterAll(() => {
  // Those that a failed test has left.
  for (const { child } of started) child.kill("SIGKILL");
  folder.remove();
});

/** What made-up later forms add. */
const STEPS = `{
  ${FORM + 1}: "ALTER TABLE event ADD COLUMN weight bigint NOT NULL DEFAULT 1; ALTER TABLE subscription ADD COLUMN colour text; CREATE TABLE weighed (one bigint PRIMARY KEY); DROP INDEX audit_changed; CREATE INDEX audit_changed ON audit (changed_ms, rowid, change)",
  ${FORM + 2}: "ALTER TABLE delivery ADD COLUMN weight bigint NOT NULL DEFAULT 1",
}`;

/** Makes a copy of this build whose tables have a later form; answers what starts it. */
function buildOf(form: number): readonly string[] {
  const copy = join(folder.path, `build-${form}`);
  const words = copyOfBuild(copy);
  edit(join(copy, "dist/program/postgres-thread.js"), [
    [new RegExp(`(var FORM\\d* = )${FORM};`), `$1${form};`],
    [/(var STEPS = )\{\};/, `$1${STEPS};`],
  ]);
  return words;
}

function edit(file: string, changes: readonly (readonly [from: RegExp, to: string])[]): void {
  let text = readFileSync(file, "utf8");
  for (const [from, to] of changes) {
    expect(text.match(new RegExp(from, "g"))).toHaveLength(1);
    text = text.replace(from, to);
  }
  writeFileSync(file, text);
}

async function startNode(name: string, build?: readonly string[]): Promise<RunningProgram> {
  const env = {
    EVREG_DATABASE_URL: cluster.url(database),
    EVREG_BOOTSTRAP_TOKEN: TOKEN,
    EVREG_DELIVERY_ALLOW_HTTP: "true",
    EVREG_DELIVERY_ALLOW_NETWORKS: "127.0.0.0/8",
  };
  const node = await startProgram(join(folder.path, name), [], env, [], build);
  started.push(node);
  return node;
}

/** Answers `undefined` where the node refuses, or cannot be reached. */
async function ask(
  url: string,
  path: string,
  body: unknown,
): Promise<{ data: { rowid: number } } | undefined> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const answer = await post(url + path, body, headers).catch(() => undefined);
  if (answer === undefined || answer.status === 503) return undefined;
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}: ${text}`);
  return JSON.parse(text) as { data: { rowid: number } };
}

async function numberIn(text: string): Promise<number> {
  const [row] = await cluster.query<{ count: number }>(`SELECT (${text})::int AS count`, database);
  return row!.count;
}

function formNow(): Promise<number> {
  return numberIn("SELECT form FROM evreg.turn");
}

function undelivered(): Promise<number> {
  return numberIn("SELECT count(*) FROM evreg.delivery WHERE state <> 2");
}

/** Publishes to all nodes until it is stopped, and again to another one what was refused. */
class Publisher {
  readonly urls: Set<string>;
  readonly acknowledged = new Map<number, number>();
  asked = 0;
  refused = 0;
  readonly #leftOutUntilMs = new Map<string, number>();
  readonly #workers: readonly Promise<void>[];
  #last = 0;
  #isStopped = false;

  constructor(urls: readonly string[]) {
    this.urls = new Set(urls);
    this.#workers = Array.from({ length: WORKERS }, () => this.#work());
  }

  async more(): Promise<void> {
    const wanted = this.acknowledged.size + EVENTS_EACH;
    const enough = until("more is published", () => this.acknowledged.size >= wanted, LONGEST_MS);
    await Promise.race([enough, Promise.all(this.#workers)]);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#workers);
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) await this.#publish((this.#last += 1));
  }

  async #publish(n: number): Promise<void> {
    const event = { action: ACTION, payload: { n }, idempotency_key: `n-${n}` };
    for (;;) {
      const nowMs = performance.now();
      const open = [...this.urls].filter((url) => (this.#leftOutUntilMs.get(url) ?? 0) <= nowMs);
      const url = open[this.asked % open.length] ?? [...this.urls][0]!;
      this.asked += 1;
      const answer = await ask(url, "/v1/events", event);
      if (answer !== undefined) {
        this.acknowledged.set(n, answer.data.rowid);
        return;
      }
      this.refused += 1;
      this.#leftOutUntilMs.set(url, performance.now() + LEFT_OUT_MS);
    }
  }
}

inLongForm(
  "nodes are replaced by those of the next form under load: nothing is lost, and hardly anything refused",
  { timeout: LONGEST_MS },
  async () => {
    const old = [await startNode("one"), await startNode("two")];
    const urls = old.map(({ url }) => url);
    const receiver = await startReceiver();
    await ask(urls[0]!, "/v1/actions", {
      action: ACTION,
      application: "shop",
      schemata: { type: "object" },
    });
    for (let number = 0; number < SUBSCRIPTIONS; number += 1) {
      const made = { action: ACTION, application: "shop", subscription: `hook-${number}` };
      await ask(urls[0]!, "/v1/subscriptions", { ...made, handler: `${receiver.url}/${number}` });
    }
    const publisher = new Publisher(urls);
    await publisher.more();
    const nodes: RunningProgram[] = [];
    for (const [place, before] of old.entries()) {
      const node = await startNode(`new-${place}`, next);
      nodes.push(node);
      expect(await formNow()).toBe(FORM + 1);
      publisher.urls.add(node.url);
      // Both forms are side by side.
      await publisher.more();
      expect((await before.end("SIGTERM")).code).toBe(0);
      publisher.urls.delete(before.url);
    }
    await publisher.more();
    await publisher.stop();

    const { acknowledged, asked, refused } = publisher;
    process.stdout.write(
      `rolling upgrade: ${asked} asked, ${acknowledged.size} stored, ${refused} refused\n`,
    );
    expect(asked - refused).toBe(acknowledged.size);
    // Each publisher may be at each node just as that stops.
    expect(refused).toBeLessThanOrEqual(Math.max(asked / 100, WORKERS * old.length));
    const stored = await cluster.query<{ rowid: number; n: number }>(
      "SELECT rowid::int AS rowid, (convert_from(payload, 'UTF8')::json ->> 'n')::int AS n FROM evreg.event",
      database,
    );
    expect(stored).toHaveLength(acknowledged.size);
    expect(new Map(stored.map(({ rowid, n }) => [n, rowid]))).toEqual(acknowledged);
    await until("all is delivered", async () => (await undelivered()) === 0, LONGEST_MS);
    const arrived = new Set(receiver.requests.map(({ path, headers }) => `${path} ${headers["webhook-id"]}`));
    expect(arrived.size).toBe(acknowledged.size * SUBSCRIPTIONS);
    for (const node of nodes) await node.end("SIGTERM");
    await receiver.close();
  },
);

inLongForm("no node works on tables that it does not know", { timeout: LONGEST_MS }, async () => {
  await (await startNode("next", next)).end("SIGTERM");
  expect(await formNow()).toBe(FORM + 1);

  // An old one may come back, as to undo an upgrade, and keeps away one that would change its tables further.
  const old = await startNode("old");
  const refusal = "Start a version between the two in the place of each";
  await expect(startNode("last", last)).rejects.toThrow(refusal);
  expect(await formNow()).toBe(FORM + 1);

  // One that stood still while they changed ends when it goes on.
  old.child.kill("SIGSTOP");
  await cluster.run("UPDATE evreg.node SET until = clock_timestamp()", database);
  const newest = await startNode("last", last);
  expect(await formNow()).toBe(FORM + 2);
  old.child.kill("SIGCONT");
  expect((await old.ended).stderr).toContain("a newer evreg has changed the tables");
  await expect(startNode("late")).rejects.toThrow(`knows them up to form ${FORM + 1}`);
  await newest.end("SIGTERM");
});
