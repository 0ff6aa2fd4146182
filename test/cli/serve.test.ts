import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { announcement } from "../../src/commands/serve.ts";
import { commandLine } from "../support/command-line.ts";
import {
  type Outcome,
  type RunningProgram,
  runProgram,
  startCommand,
  startProgram,
  temporaryFolder,
} from "../support/program.ts";
import { until } from "../support/until.ts";

const TOKEN = `evreg_${"a".repeat(36)}`;
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
  await until("the server has the folder", () => existsSync(join(folder.path, ".evreg/owner.json")));
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

/** Starts a server, and ends it by a fault of this code once it has asked the store for all that a start does. */
async function endedByFault(code: string, ...flags: readonly string[]): Promise<Outcome> {
  const folder = temporaryFolder();
  const fault = join(folder.path, "fault.mjs");
  writeFileSync(
    fault,
    `function faulty() { throw Object.assign(new Error("unforeseen ${TOKEN}"), { code: "${code}" }); }
     process.on("SIGUSR2", faulty);`,
  );
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(fault).href}` };
  const server = await startProgram(folder.path, ["--dev", ...flags], env);
  // A process that ends inside one of the driver's calls ends by a signal.
  expect((await fetch(`${server.url}/v1/events?limit=1`)).status).toBe(200);
  const outcome = await server.end("SIGUSR2");
  folder.remove();
  return outcome;
}

describe.skipIf(process.platform === "win32")("an uncaught exception", () => {
  test.each(["", "EPIPE"])(
    "(%s) is in the log with its stack and without secrets, and ends the server with 1",
    async (code) => {
      const outcome = await endedByFault(code);
      expect(outcome).toMatchObject({ code: 1, stdout: "" });
      expect(outcome.stderr).not.toContain(TOKEN);
      const lines = outcome.stderr.split("\n").filter((line) => line.startsWith("{"));
      const errors = lines.map((line) => JSON.parse(line) as { level: string; err?: { stack: string } });
      const stacks = errors.filter(({ level }) => level === "error").map(({ err }) => err?.stack);
      expect(stacks).toEqual([expect.stringMatching(/unforeseen \[redacted\][^]*at .*faulty/)]);
    },
  );

  test("has its stack on stderr where there is no log", async () => {
    const { code, stderr } = await endedByFault("", "--log-level", "silent");
    expect(code).toBe(1);
    expect(stderr).toMatch(/^Error: .*\n\s+cause: Error: unforeseen.*\n\s+at .*faulty/);
  });
});

const ABOUT = {
  version: "1.2.3",
  url: "http://127.0.0.1:7480",
  addresses: ["127.0.0.1:7480"],
  page: "http://127.0.0.1:7480/ui/",
  data: "/srv/shop/.evreg",
  database: undefined,
  dev: false,
  configFile: undefined,
  tokenFile: "/srv/shop/.evreg/token",
  needsToken: true,
  hasActions: false,
  cwd: "/srv/shop",
  program: "evreg",
};

const here = { ...ABOUT, cwd: "/home/me", data: "/srv/it's", program: "npx evreg", hasActions: true };
const open = { ...ABOUT, tokenFile: undefined, needsToken: false };
const all = ["0.0.0.0:7480", "127.0.0.1:7480", "192.0.2.7:7480", "[::1]:7480", "[2001:db8::7]:7480"];
const one = { url: "http://192.0.2.7:7480", addresses: ["192.0.2.7:7480"] };

test.each([
  [
    "the page, and how to sign in",
    ABOUT,
    new RegExp(`page +${ABOUT.page}\n +to sign in there, paste a token\n`),
  ],
  ["the data folder", ABOUT, new RegExp(ABOUT.data)],
  ["what prints the token", ABOUT, new RegExp(`token +cat ${ABOUT.tokenFile} prints it\n`)],
  ["a command to type next", ABOUT, /evreg actions create hello\.said/],
  ["that, and nothing else", ABOUT, /^(?!.*(?:also|database|--data))/s],
  ["its database", { ...ABOUT, database: "localhost/shop" }, /in the database localhost\/shop/],
  [
    "another data folder in a command that runs in a checkout",
    here,
    /npx evreg events --data '\/srv\/it'\\''s'/,
  ],
  ["that no token is needed", { ...open, dev: true }, /token +none needed/],
  [
    "that a token is needed",
    { ...ABOUT, tokenFile: undefined },
    /token +one of those that were made; without any, /,
  ],
  ["the page alone where no token is needed", open, new RegExp(`page +${open.page}\n {2}data`)],
  ["no page where it is turned off", { ...ABOUT, page: undefined }, /^(?!.*(?:page|sign in))/s],
  [
    "where others reach it",
    { ...ABOUT, addresses: all },
    /also {3}192\.0\.2\.7:7480, \[2001:db8::7\]:7480\n/,
  ],
  ["one address only once", { ...ABOUT, ...one }, /^(?!.*also)/s],
])("a terminal shows %s", (_, about, shown) => {
  expect(announcement(about)).toMatch(shown);
});

test("the first suggested command does not break the README's tour", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const [, action = ""] = /actions create (\S+)/.exec(announcement(ABOUT)) ?? [];
  expect(action).toMatch(/./);
  expect(readme).not.toContain(action);
});
