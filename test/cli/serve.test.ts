import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { announcement } from "../../src/commands/serve.ts";
import { commandLine } from "../support/command-line.ts";
import {
  type RunningProgram,
  runProgram,
  startCommand,
  startProgram,
  temporaryFolder,
} from "../support/program.ts";
import { until } from "../support/until.ts";

const home = temporaryFolder();
let running: RunningProgram;
beforeAll(async () => {
  running = await startProgram(home.path, [], { NODE_OPTIONS: "--max-semi-space-size=32" });
});
afterAll(() => home.remove());

test("--dev is refused where others could connect, and a port in use is named", async () => {
  const other = temporaryFolder();
  const { port } = new URL(running.url);
  const [open, taken] = await Promise.all([
    runProgram(["serve", "--dev", "--host", "0.0.0.0", "--data", join(other.path, "x")]),
    runProgram(["serve", "--data", other.path, "--port", port]),
  ]);
  expect(open).toMatchObject({ code: 2, stdout: "" });
  expect(existsSync(join(other.path, "x"))).toBe(false);
  expect(taken).toMatchObject({ code: 5, stdout: "" });
  expect(taken.stderr).toContain(port);
  other.remove();
});

test.skipIf(process.platform !== "linux")(
  "the server is the process that was started: Node has the options of the operator and no others",
  () => {
    const [line = "", environment = ""] = ["cmdline", "environ"].map((name) =>
      readFileSync(`/proc/${running.child.pid}/${name}`, "utf8"),
    );
    expect(line).not.toContain("\0--max-");
    expect(environment).toContain("NODE_OPTIONS=--max-semi-space-size=32");
    expect(environment).not.toContain("MALLOC_");
  },
);

test("a command waits for the server that is starting on the folder", async () => {
  const folder = temporaryFolder();
  const server = startCommand("serve --dev --port 0 --log-level silent", { cwd: folder.path });
  await until("the server has the folder", () => existsSync(join(folder.path, ".evreg/evreg.db")));
  const outcome = await commandLine(folder.path, {}).run("whoami");
  server.child.kill("SIGTERM");
  await server.ended;
  folder.remove();
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(outcome.stdout).toMatch(/^On +http:\/\/127\.0\.0\.1:/m);
});

test("without a terminal the server writes log lines only, to stderr, and ends with 0 when stopped", async () => {
  const { code, stdout, stderr } = await running.end("SIGTERM");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  const lines = stderr
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines).toContainEqual(
    expect.objectContaining({
      msg: "listening",
      url: running.url,
      addresses: [new URL(running.url).host],
      data: home.path,
    }),
  );
  // It is a first start with tokens: where the first one is must be in the log.
  expect(stderr).toContain(`"token_file":${JSON.stringify(join(home.path, "token"))}`);
  expect(lines.at(-1)).toMatchObject({ msg: "stopped" });
});

test.skipIf(process.platform === "win32").each(["", "EPIPE"])(
  "an uncaught exception (%s) is in the log with its stack and without secrets, and ends the server with 1",
  async (code) => {
    const folder = temporaryFolder();
    const token = `evreg_${"a".repeat(36)}`;
    const fault = join(folder.path, "fault.mjs");
    writeFileSync(
      fault,
      `function faulty() { throw Object.assign(new Error("unforeseen ${token}"), { code: "${code}" }); }
       process.on("SIGUSR2", faulty);`,
    );
    const server = await startProgram(folder.path, ["--dev"], {
      NODE_OPTIONS: `--import=${pathToFileURL(fault).href}`,
    });
    await storeAtRest(server.url);
    const outcome = await server.end("SIGUSR2");
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).not.toContain(token);
    const lines = outcome.stderr.split("\n").filter((line) => line.startsWith("{"));
    const errors = lines.map((line) => JSON.parse(line) as { level: string; err?: { stack: string } });
    const stacks = errors.filter(({ level }) => level === "error").map(({ err }) => err?.stack);
    expect(stacks).toEqual([expect.stringMatching(/unforeseen \[redacted\][^]*at .*faulty/)]);
    folder.remove();
  },
);

test.skipIf(process.platform === "win32")("without a log, the stack of a crash goes to stderr", async () => {
  const folder = temporaryFolder();
  const fault = join(folder.path, "fault.mjs");
  writeFileSync(fault, `process.on("SIGUSR2", function faulty() { throw new Error("unforeseen"); });`);
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(fault).href}` };
  const server = await startProgram(folder.path, ["--dev", "--log-level", "silent"], env);
  await storeAtRest(server.url);
  const outcome = await server.end("SIGUSR2");
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toMatch(/^Error: .*\n\s+cause: Error: unforeseen\n\s+at .*faulty/);
  folder.remove();
});

/** What a start asks of the store is done: a process that ends inside one of the driver's calls ends by a signal. */
async function storeAtRest(url: string): Promise<void> {
  expect((await fetch(`${url}/v1/events?limit=1`)).status).toBe(200);
}

const ABOUT = {
  version: "1.2.3",
  url: "http://127.0.0.1:7480",
  addresses: ["127.0.0.1:7480"],
  page: "http://127.0.0.1:7480/ui/#code=abc",
  data: "/srv/shop/.evreg",
  database: undefined,
  dev: false,
  configFile: undefined,
  tokenFile: "/srv/shop/.evreg/token",
  needsToken: true,
  context: undefined,
  hasActions: false,
  cwd: "/srv/shop",
  program: "evreg",
};

test("a terminal shows the address, the data folder, where the token is, and a command to type next", () => {
  const text = announcement(ABOUT);
  for (const part of [ABOUT.page, ABOUT.data, ABOUT.tokenFile, "evreg actions create hello.said"]) {
    expect(text).toContain(part);
  }
  expect(text).not.toContain("also");
  expect(text).not.toContain("database");
  expect(announcement({ ...ABOUT, database: "localhost/shop" })).toContain("in the database localhost/shop");
  expect(text).not.toContain("--data");
});

test("the suggested command names another data folder, and runs in a checkout", () => {
  const text = announcement({
    ...ABOUT,
    cwd: "/home/me",
    data: "/srv/it's",
    program: "npx evreg",
    hasActions: true,
  });
  expect(text).toContain("npx evreg events --data '/srv/it'\\''s'");
  const without = { ...ABOUT, tokenFile: undefined };
  expect(announcement({ ...without, needsToken: false, dev: true })).toMatch(/token +none needed/);
  expect(announcement(without)).toMatch(/token +one of those that were made; without any, stop this/);
});

test("the page has a hint where it takes a code, and no line where it is turned off", () => {
  expect(announcement(ABOUT)).toContain("later: evreg open");
  const open = { ...ABOUT, tokenFile: undefined, needsToken: false, page: "http://127.0.0.1:7480/ui/" };
  expect(announcement(open)).toMatch(/page +http:\/\/127\.0\.0\.1:7480\/ui\/\n {2}data/);
  expect(announcement({ ...ABOUT, page: undefined })).not.toMatch(/page|evreg open/);
});

test("where a context is in use, the suggested command names the data folder", () => {
  const text = announcement({ ...ABOUT, context: "prod" });
  expect(text).toContain("Your context prod is in use");
  expect(text).toContain("actions create hello.said --application hello --schema - --data /srv/shop/.evreg");
});

test("a server that others can reach shows its address", () => {
  const addresses = ["0.0.0.0:7480", "127.0.0.1:7480", "192.0.2.7:7480", "[::1]:7480", "[2001:db8::7]:7480"];
  expect(announcement({ ...ABOUT, addresses })).toContain("also   192.0.2.7:7480, [2001:db8::7]:7480\n");
  const one = { ...ABOUT, url: "http://192.0.2.7:7480", addresses: ["192.0.2.7:7480"] };
  expect(announcement(one)).not.toContain("also");
});

test("the first suggested command does not break the README's tour", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const [, action = ""] = /actions create (\S+)/.exec(announcement(ABOUT)) ?? [];
  expect(action).toMatch(/./);
  expect(readme).not.toContain(action);
});
