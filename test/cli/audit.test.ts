import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditEntry } from "../../src/domain/audit.ts";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";
import { serveHere, type TestServer } from "../support/server.ts";

const folder = temporaryFolder();
const data = join(folder.path, "data");
const { run, json } = commandLine(folder.path, { EVREG_DATA: data });
let server: TestServer;

beforeAll(async () => {
  mkdirSync(data, { mode: 0o700 });
  server = await serveHere(data);
  await run("actions create a.b --application shop --schema -".split(" "), { input: "{}" });
});
afterAll(async () => {
  await server.stop();
  folder.remove();
});

test("for a person each change is a line, as long back as is asked for", async () => {
  await run(["actions", "update", "a.b", "--mode", "none"]);
  const { stdout } = await run(["audit", "--since", "1h"]);
  expect(stdout.split("\n")[0]).toMatch(/^ID +AT +BY +FROM +CHANGE +WHAT +MEMBERS$/);
  expect(stdout).toMatch(/ bootstrap +\S+ +action\.updated +\d+ a\.b +compatibility full → none$/m);
  const none = await run(["audit", "--to", "2020-01-01"]);
  expect(none).toEqual({ code: 0, stdout: "", stderr: "No change was kept, or none in that time.\n" });
  const page = await run(["audit", "--limit", "1"]);
  expect(page.stderr).toMatch(/^1 change shown\. Next page: evreg audit --limit 1 --after \d+\n$/);
});

test("a command on the folder itself is local, and a restore is told by what it made", async () => {
  const backup = join(folder.path, "copy.db");
  expect((await run(["backup", backup])).code).toBe(0);
  const restored = join(folder.path, "restored");
  expect((await run(["restore", backup, "--data", restored])).code).toBe(0);
  await run(["tokens", "create", "later", "--scope", "read", "--data", restored]);
  const { data: all } = await json<readonly AuditEntry[]>(["audit", "--data", restored]);
  expect(all[0]).toMatchObject({ change: "token.created", name: "later", by: "local", token_id: null });
  expect(all[1]).toMatchObject({ change: "data.restored", record_id: null, by: "local" });
  expect(all[2]).toMatchObject({ change: "action.updated" });
});
