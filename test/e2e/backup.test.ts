import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { useFolder } from "../support/command-line.ts";
import { fileSql } from "../support/file-sql.ts";
import { type RunningProgram, startProgram } from "../support/program.ts";
import { serveHere } from "../support/server.ts";
import { until } from "../support/until.ts";

/** A load that leaves the processor to the backup. */
const PUBLISH_EVERY_MS = 20;

const { folder, at, read, write, run, json, expectEach } = useFolder({ EVREG_DATA: "data" });
let server: RunningProgram;

beforeAll(async () => {
  const create = "actions create order.created --application shop --schema -";
  await run(create, { input: '{"type": "object"}' });
  server = await startProgram(at("data"));
});
afterAll(() => server.end("SIGKILL"));

const payload = RawJson.fromValue({ filler: "x".repeat(1_000) });
const batch: NewEvent[] = Array.from({ length: 20 }, () => ({ action: "order.created", payload }));

test("a backup under load contains every event acknowledged before it, and can be restored", async () => {
  const evreg = connect({ url: server.url, token: read("data/token").trim() });
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
  expect(readdirSync(folder).filter((name) => name.startsWith("b.db"))).toEqual(["b.db"]);

  await expectEach([
    ["backup b.db", 5, "", /--force/],
    ["backup b.db --force", 0, undefined, ""],
    ["restore b.db --force", 5, "", /in use by evreg serve/],
  ]);

  await server.end("SIGKILL");
  const told = [
    String.raw`^The tokens that hold are those of the backup, .*\. To make another, before .* --data .*\n`,
    "(?=[^]*Numbers of events and deliveries go on far beyond the last ones)",
    "(?=[^]*Start it with: \\S*evreg serve --data)(?![^]*deliveries wait)",
  ];
  await expectEach([["restore b.db --data elsewhere", 0, undefined, new RegExp(told.join(""))]]);
  // It has no token file and yet is no folder of a server with --dev.
  await expectEach([["doctor --data elsewhere", 0, /`evreg serve --data elsewhere`/]]);
  const again = await serveHere(at("elsewhere"));
  const other = connect({ url: again.url, token: read("data/token").trim() });
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
  const create = "subscriptions create --data elsewhere --action order.created --application shop";
  const handled = `${create} --handler https://a.example --subscription`;
  const input = '{"action":"order.created","payload":{}}\n'.repeat(2);
  await expectEach([
    [`${handled} one`, 0],
    [`${handled} paused --no-active`, 0],
    ["publish --batch - --data elsewhere", 0, undefined, /: evreg serve --data elsewhere\n/, { input }],
    ["backup - --json --data elsewhere", 2],
  ]);
  const { stdout, code, stderr } = await run("backup --data elsewhere");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [, file = ""] = /^File +(\S+)$/m.exec(stdout) ?? [];
  expect(file).toMatch(/^evreg-backup-\d{8}T\d{6}Z\.db$/);

  const piped = { input: readFileSync(at(file)) };
  const waits = [
    "2 deliveries wait; the server sends them when it starts[^]*",
    "evreg subscriptions update ID --no-active --data ",
  ];
  const restored = new RegExp(`"file":"${at("piped/evreg.db")}".*"waiting_deliveries":2,.*"kept":null`);
  await expectEach([
    ["restore - --data piped --json", 0, restored, new RegExp(waits.join("")), piped],
    ["restore - --data piped", 5, "", undefined, piped],
    ["backup no/where.db --data piped", 2],
  ]);
});

test("a backup names the events that are damaged", async () => {
  const damage = "UPDATE event SET payload = x'7b2261223a317d' WHERE rowid = (SELECT max(rowid) FROM event)";
  fileSql(at("piped/evreg.db"), damage);
  const damaged =
    /^Warning: the data is damaged, and so is the backup: 1 event is not as published: \d+\. Keep /;
  await expectEach([["backup damaged.db --data piped", 0, undefined, damaged]]);
});

test("a backup that cannot be made reports why", async () => {
  const file = readFileSync(at("piped/evreg.db"));
  // The number of free pages, of which there are fewer.
  file.writeUInt32BE(5_000, 36);
  write("piped/evreg.db", file);
  const damaged =
    /^Error: The data at \S+\/piped is damaged: \*\*\* in database main \*\*\*; \w(?:(?!\\n).)*\n/;
  await expectEach([
    ["backup piped --data piped", 2, "", /is a folder; name a file/],
    ["backup piped --data piped --force", 2, "", /is a folder; name a file/],
    ["backup none.db --data piped", 1, "", damaged],
  ]);
  expect(existsSync(at("none.db"))).toBe(false);
});
