import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { commandLine } from "../support/command-line.ts";
import { type RunningProgram, startProgram, temporaryFolder } from "../support/program.ts";
import { serveHere } from "../support/server.ts";
import { until } from "../support/until.ts";

/** A load that leaves the processor to the backup. */
const PUBLISH_EVERY_MS = 20;

const folder = temporaryFolder();
const data = join(folder.path, "data");
const { run, json } = commandLine(folder.path, { EVREG_DATA: data });
const at = (name: string): string => join(folder.path, name);
let server: RunningProgram;

beforeAll(async () => {
  const create = "actions create order.created --application shop --schema -".split(" ");
  await run(create, { input: '{"type": "object"}' });
  server = await startProgram(data);
});
afterAll(async () => {
  await server.end("SIGKILL");
  folder.remove();
});

const payload = RawJson.fromValue({ filler: "x".repeat(1_000) });
const batch: NewEvent[] = Array.from({ length: 20 }, () => ({ action: "order.created", payload }));

test("a backup under load contains every event acknowledged before it, and can be restored", async () => {
  const evreg = connect({ url: server.url, token: readFileSync(join(data, "token"), "utf8").trim() });
  const acknowledged: number[] = [];
  const over = new AbortController();
  const publishing = Array.from({ length: 2 }, async () => {
    while (!over.signal.aborted) {
      const { data: events } = await evreg.events.publishBatch(batch);
      acknowledged.push(...events.map((event) => event!.rowid));
      await pause(PUBLISH_EVERY_MS);
    }
  });
  await until("events are acknowledged", () => acknowledged.length >= 500);
  const before = [...acknowledged];
  const { data: made } = await json<{ last_event: number; sha256: string }>("backup b.db");
  over.abort();
  await Promise.all(publishing);
  await evreg.close();
  expect(made.last_event).toBeGreaterThanOrEqual(Math.max(...before));
  expect(statSync(at("b.db")).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder.path).filter((name) => name.startsWith("b.db"))).toEqual(["b.db"]);

  const there = await run("backup b.db");
  expect(there).toMatchObject({ code: 5, stdout: "" });
  expect(there.stderr).toContain("--force");
  expect(await run("backup b.db --force")).toMatchObject({ code: 0, stderr: "" });

  const inUse = await run("restore b.db --force");
  expect(inUse).toMatchObject({ code: 5, stdout: "" });
  expect(inUse.stderr).toContain("in use by evreg serve");

  await server.end("SIGKILL");
  const restored = await run(["restore", "b.db", "--data", at("elsewhere")]);
  expect(restored.code).toBe(0);
  expect(restored.stderr).toMatch(
    /^The tokens that hold are those of the backup, .*\. To make another, before .* --data /,
  );
  expect(restored.stderr).toContain("Numbers of events and deliveries go on far beyond the last ones");
  expect(restored.stderr).not.toContain("deliveries wait");
  expect(restored.stderr).toContain("Start it with: evreg serve --data");
  const again = await serveHere(at("elsewhere"));
  const other = connect({ url: again.url, token: readFileSync(join(data, "token"), "utf8").trim() });
  const { meta } = await other.events.list({ limit: 1 });
  const found = new Set<number>();
  for (let after = 0; found.size < meta.total;) {
    const { data: events } = await other.events.list({ order: "asc", after, limit: 500 });
    for (const { rowid } of events) found.add(rowid);
    after = events.at(-1)!.rowid;
  }
  expect(before.filter((rowid) => !found.has(rowid))).toEqual([]);
  const { data: next } = await other.events.publish(batch[0]!);
  expect(next.rowid).toBeGreaterThan(Math.max(...acknowledged));
  await other.close();
  await again.stop();
});

test("a backup can go to a pipe and come from one, without a server too", async () => {
  const there = ["--data", at("elsewhere"), "--action", "order.created", "--application", "shop"];
  const handled = [...there, "--handler", "https://a.example"];
  for (const paused of [[], ["--no-active"]]) {
    const create = ["subscriptions", "create", "--subscription", `s${paused.length}`, ...handled, ...paused];
    expect(await run(create)).toMatchObject({ code: 0 });
  }
  const publish = ["publish", "--batch", "-", "--data", at("elsewhere")];
  const input = '{"action":"order.created","payload":{}}\n'.repeat(2);
  expect(await run(publish, { input })).toMatchObject({ code: 0 });
  const { stdout, code, stderr } = await run(["backup", "--data", at("elsewhere")]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [, file = ""] = /^File +(\S+)$/m.exec(stdout) ?? [];
  expect(file).toMatch(/^evreg-backup-\d{8}T\d{6}Z\.db$/);
  const source = readFileSync(at(file));

  const refused = await run(["backup", "-", "--json", "--data", at("elsewhere")]);
  expect(refused).toMatchObject({ code: 2 });

  const restored = await run(["restore", "-", "--data", at("piped"), "--json"], { input: source });
  expect(JSON.parse(restored.stdout)).toMatchObject({
    data: { file: at("piped/evreg.db"), kept: null, waiting_deliveries: 2 },
  });
  expect(restored.stderr).toContain("2 deliveries wait; the server sends them when it starts");
  expect(restored.stderr).toMatch(/evreg subscriptions update ID --no-active --data /);
  const occupied = await run(["restore", "-", "--data", at("piped")], { input: source });
  expect(occupied).toMatchObject({ code: 5, stdout: "" });
  expect(await run(["backup", at("no/where.db"), "--data", at("piped")])).toMatchObject({ code: 2 });
});

test("a backup that cannot be made reports why", async () => {
  const words = ["backup", "--data", at("piped")];
  for (const force of [[], ["--force"]]) {
    const toFolder = await run([...words, at("piped"), ...force]);
    expect(toFolder).toMatchObject({ code: 2, stderr: expect.stringContaining("is a folder; name a file") });
  }
  const file = readFileSync(at("piped/evreg.db"));
  // The number of free pages, of which there are fewer.
  file.writeUInt32BE(5_000, 36);
  writeFileSync(at("piped/evreg.db"), file);
  const damaged = await run([...words, at("none.db")]);
  expect(damaged).toMatchObject({ code: 1, stdout: "" });
  expect(damaged.stderr).toMatch(
    /^Error: The data at \S+\/piped is damaged: \*\*\* in database main \*\*\*; \w/,
  );
  expect(damaged.stderr).not.toContain("\\n");
  expect(existsSync(at("none.db"))).toBe(false);
});
