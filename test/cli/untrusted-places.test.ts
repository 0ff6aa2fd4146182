import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
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

/** A data folder that says a server runs there. */
function forged(name = "data"): string {
  const data = join(folder.path, name);
  mkdirSync(data, { mode: 0o700 });
  const owner = { pid: process.pid, command: "serve", instance: "forged", started_at: "2026-01-01", url };
  writeFileSync(join(data, "owner.json"), JSON.stringify(owner), { mode: 0o600 });
  return data;
}

test.skipIf(process.platform === "win32")(
  "in a folder others may write to, nobody is sent that folder's token",
  async () => {
    const data = forged();
    writeFileSync(join(data, "token"), "evreg_of_the_folder", { mode: 0o600 });
    chmodSync(data, 0o777);
    const { code, stdout, stderr } = await cli.run(["events", "--data", data], {
      env: { EVREG_TOKEN: TOKEN },
    });
    expect({ code, stdout, seen }).toEqual({ code: 2, stdout: "", seen: [] });
    expect(stderr).toContain(`chmod 700 ${data}`);
  },
);

test("a configuration file that was merely found causes no request; a named one or typed flag does", async () => {
  const config = join(folder.path, "evreg.config.yaml");
  writeFileSync(config, `remote:\n  url: ${url}\n`);
  writeFileSync(join(folder.path, "token.txt"), TOKEN);
  const env = { EVREG_TOKEN: TOKEN };
  const unmeant = await Promise.all([
    cli.run("events", { env }),
    cli.run("events", { env: { EVREG_TOKEN_FILE: "token.txt" } }),
    cli.run(["events", "--token", TOKEN]),
    cli.run("publish a.b {}"),
    cli.run("publish a.b - --json", { input: "{}" }),
  ]);
  for (const { code, stdout, stderr } of unmeant) {
    expect({ code, stdout, seen }).toEqual({ code: 2, stdout: "", seen: [] });
    expect(stderr).toContain(`Only ${config}:2:8 names the server ${url}`);
    expect(stderr).toMatch(/--url or EVREG_URL.*--config or EVREG_CONFIG.*evreg context add/);
    expect(stderr).not.toContain(TOKEN);
  }
  const meant = await Promise.all([
    cli.run(["events", "--url", url], { env }),
    cli.run("events", { env: { ...env, EVREG_URL: url } }),
    cli.run(["events", "--config", config], { env }),
    cli.run("events", { env: { ...env, EVREG_CONFIG: config } }),
  ]);
  for (const { code } of meant) expect.soft(code).toBe(0);
  expect(seen).toEqual(meant.map(() => `Bearer ${TOKEN}`));
});

test("a found configuration file does not replace the context in use, unless its address is the same", async () => {
  const settings = { EVREG_CONFIG_DIR: join(folder.path, "settings") };
  const add = async (name: string, address: string, ...words: string[]): Promise<void> => {
    const added = await cli.run(["context", "add", name, "--no-check", "--url", address, ...words], {
      env: settings,
    });
    expect(added).toMatchObject({ code: 0 });
  };
  const publish = () => cli.run("publish a.b {}", { env: settings });
  writeFileSync(join(folder.path, "evreg.config.yaml"), `remote:\n  url: ${url}\n`);
  await add("prod", "http://127.0.0.1:9", "--use");
  await add("same", url);
  expect(await publish()).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("context in use is prod"),
  });
  expect(seen).toEqual([]);
  await cli.run("context use --none", { env: settings });
  // A damaged one stands before it.
  writeFileSync(join(folder.path, "settings", "contexts", "bad.json"), "{", { mode: 0o600 });
  await publish();
  await cli.run("context use same", { env: settings });
  await publish();
  expect(seen).toEqual(["no token", "no token"]);
});

test.runIf(process.platform === "linux")(
  "a data folder that was merely found does not choose the server, unless that has its data open",
  async () => {
    const planted = forged(".evreg");
    const elsewhere = join(folder.path, "elsewhere");
    const opened = openSync(elsewhere, "w");
    const run = (env: Record<string, string> = {}) =>
      Promise.all([
        cli.run("publish a.b {}", { env: { EVREG_TOKEN: TOKEN, ...env } }),
        cli.run(["events", "--token", TOKEN], { env }),
      ]);
    const refused = await run();
    // A link leads to what a process of this user's may well have open; it is not this folder's.
    symlinkSync(elsewhere, join(planted, "evreg.db"));
    refused.push(...(await run()));
    rmSync(join(planted, "evreg.db"));
    forged("d");
    const config = join(folder.path, "evreg.config.yaml");
    writeFileSync(config, "data: ./d\n");
    const byFile = await run();
    closeSync(opened);
    for (const { code, stdout, stderr } of [...refused, ...byFile]) {
      expect({ code, stdout, seen }).toEqual({ code: 2, stdout: "", seen: [] });
      expect(stderr).toMatch(/Only .*owner\.json names the server http.*nothing was sent there.*--data/);
      expect(stderr).not.toContain(TOKEN);
    }
    for (const { stderr } of byFile) expect(stderr).toContain(join(folder.path, "d", "owner.json"));
    await run({ EVREG_CONFIG: config });
    expect(seen).toEqual([`Bearer ${TOKEN}`, `Bearer ${TOKEN}`]);
  },
);

test("a found file's data folder does not replace the context in use", async () => {
  const settings = { EVREG_CONFIG_DIR: join(folder.path, "settings") };
  await cli.run(["context", "add", "prod", "--no-check", "--use", "--url", url], { env: settings });
  const config = join(folder.path, "evreg.config.yaml");
  writeFileSync(config, "data: ./d\n");
  mkdirSync(join(folder.path, "d"));
  const events = (...words: string[]) => cli.run(["events", ...words], { env: settings });
  const { code, stdout, stderr } = await events();
  expect({ code, stdout, seen }).toEqual({ code: 2, stdout: "", seen: [] });
  expect(stderr).toContain(
    `Only ${config}:1:7 names the data folder ${join(folder.path, "d")}, and your context in use is prod.`,
  );
  expect(stderr).toMatch(/--data or EVREG_DATA.*--config or EVREG_CONFIG.*--context prod/);
  expect(await events("--config", config)).toMatchObject({ code: 3 });
  expect(await events("--data", "d")).toMatchObject({ code: 3 });
  expect(seen).toEqual([]);
  expect(await events("--context", "prod")).toMatchObject({ code: 0 });
  await cli.run("context use --none", { env: settings });
  expect(await events()).toMatchObject({ code: 3, stderr: expect.stringContaining("no data yet") });
  expect(seen).toEqual(["no token"]);
});

test("the server on the data folder is sent the environment's token, else the folder's, and none that is for an address", async () => {
  const data = forged();
  const env = { EVREG_TOKEN: TOKEN, EVREG_DATA: data };
  await cli.run("events", { env });
  writeFileSync(join(data, "token"), "evreg_of_the_folder", { mode: 0o600 });
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
