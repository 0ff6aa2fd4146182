import { chmodSync, chownSync, cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { writeOwner } from "../../src/runtime/owner-file.ts";
import { commandLine } from "../support/command-line.ts";
import { otherServer } from "../support/other-server.ts";
import { temporaryFolder } from "../support/program.ts";

// A server of somebody who wants tokens: it answers `/health` as any instance asked for, and keeps what it is shown.

const TOKEN = "evreg_of_the_environment";
let folder: ReturnType<typeof temporaryFolder>;
let url: string;
let close: () => Promise<unknown>;
let seen: string[];
let cli: ReturnType<typeof commandLine>;

beforeEach(async () => {
  folder = temporaryFolder();
  cli = commandLine(folder.path, {});
  seen = [];
  ({ url, close } = await otherServer((request, response) => {
    const about = { "/health": { instance: "forged" }, "/v1/whoami": { data_id: "forged", scopes: [] } }[
      String(request.url)
    ];
    if (about === undefined) seen.push(request.headers.authorization ?? "no token");
    const data = about ?? [];
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ data, meta: { total: 0, page: 1, per_page: 50 } }));
  }));
});
afterEach(async () => {
  await close();
  folder.remove();
});

const at = (name: string): string => join(folder.path, name);

function write(name: string, text: string): string {
  writeFileSync(at(name), text, { mode: 0o600 });
  return at(name);
}

/** A data folder that says a server runs there. */
function forged(name = "data"): string {
  const data = at(name);
  mkdirSync(data, { mode: 0o700 });
  const owner = { pid: process.pid, command: "serve", instance: "forged", started_at: "2026-01-01", url };
  writeOwner(data, owner, silentLogger);
  return data;
}

test.skipIf(process.platform === "win32")(
  "in a folder others may write to, nobody is sent that folder's token",
  async () => {
    const data = forged();
    write("data/token", "evreg_of_the_folder");
    chmodSync(data, 0o777);
    const told = new RegExp(`chmod 700 ${data}`);
    await cli.expectEach([["events --data data", 2, "", told, { env: { EVREG_TOKEN: TOKEN } }]]);
    expect(seen).toEqual([]);
  },
);

test("a configuration file that was merely found causes no request; a named one or typed flag does", async () => {
  const config = write("evreg.config.yaml", `remote:\n  url: ${url}\n`);
  write("token.txt", TOKEN);
  const env = { EVREG_TOKEN: TOKEN };
  const told = [
    `^(?!.*${TOKEN}).*Only ${config}:2:8 names the server ${url}`,
    "--url or EVREG_URL.*--config or EVREG_CONFIG",
  ];
  const unmeant = new RegExp(told.join(".*"), "s");
  await cli.expectEach([
    ["events", 2, "", unmeant, { env }],
    ["events", 2, "", unmeant, { env: { EVREG_TOKEN_FILE: "token.txt" } }],
    [`events --token ${TOKEN}`, 2, "", unmeant],
    ["publish a.b {}", 2, "", unmeant],
    ["publish a.b - --json", 2, "", unmeant, { input: "{}" }],
  ]);
  expect(seen).toEqual([]);
  const meant = await cli.expectEach([
    [`events --url ${url}`, 0, undefined, undefined, { env }],
    ["events", 0, undefined, undefined, { env: { ...env, EVREG_URL: url } }],
    [`events --config ${config}`, 0, undefined, undefined, { env }],
    ["events", 0, undefined, undefined, { env: { ...env, EVREG_CONFIG: config } }],
  ]);
  expect(seen).toEqual(meant.map(() => `Bearer ${TOKEN}`));
});

test("a data folder that was copied, as by a clone, does not choose the server", async () => {
  forged("theirs");
  cpSync(at("theirs"), at(".evreg"), { recursive: true });
  for (const args of [["publish", "a.b", "{}"], ["events"]]) {
    const { code, stdout } = await cli.run(args, { env: { EVREG_TOKEN: TOKEN } });
    expect({ code, stdout, seen }).toEqual({ code: 1, stdout: "", seen: [] });
  }
  await cli.run(["events", "--data", "theirs"], { env: { EVREG_TOKEN: TOKEN } });
  expect(seen).toEqual([`Bearer ${TOKEN}`]);
});

test("the server on the data folder is sent the environment's token, else the folder's, and none that is for an address", async () => {
  const data = forged();
  const env = { EVREG_TOKEN: TOKEN, EVREG_DATA: data };
  await cli.run("events", { env });
  write("data/token", "evreg_of_the_folder");
  await cli.run("events", { env });
  await cli.run("events", { env: { EVREG_DATA: data } });
  await cli.run(["events", "--data", data], { env: { ...env, EVREG_URL: "http://127.0.0.1:9" } });
  await cli.run("events --token evreg_typed", { env });
  rmSync(join(data, "token"));
  await cli.run(["events", "--data", data], { env: { ...env, EVREG_URL: "http://127.0.0.1:9" } });
  expect(seen).toEqual([
    `Bearer ${TOKEN}`,
    `Bearer ${TOKEN}`,
    "Bearer evreg_of_the_folder",
    "Bearer evreg_of_the_folder",
    "Bearer evreg_typed",
    "no token",
  ]);
});

describe.runIf(process.getuid?.() === 0)("root on another user's folder", () => {
  const STRANGER = 65_534;

  test("sends that user's server that user's token, or a typed one, and never root's", async () => {
    const data = forged();
    const token = join(data, "token");
    const secret = join(folder.path, "secret");
    writeFileSync(secret, "evreg_of_root", { mode: 0o600 });
    for (const path of [data, join(data, "owner.json")]) chownSync(path, STRANGER, STRANGER);
    const run = () => cli.run(["events", "--data", data], { env: { EVREG_TOKEN: TOKEN } });

    await run();
    symlinkSync(secret, token);
    await run();
    rmSync(token);
    writeFileSync(token, "evreg_of_root", { mode: 0o600 });
    await run();
    expect(seen).toEqual(["no token", "no token", "no token"]);

    chownSync(token, STRANGER, STRANGER);
    await run();
    await cli.run(["events", "--data", data, "--token", "evreg_typed"]);
    expect(seen.slice(3)).toEqual(["Bearer evreg_of_root", "Bearer evreg_typed"]);
  });
});
