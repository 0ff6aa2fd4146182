import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder, type Outcome } from "../support/program.ts";

const folder = temporaryFolder();
const here = join(folder.path, "here");
const SECRET = "evreg_of_somebody";
const { run, expectEach } = commandLine(here, {});
let outcomes: Readonly<Record<string, Outcome>>;

const COMMANDS: Readonly<Record<string, readonly [line: string, env?: Record<string, string>]>> = {
  show: ["config --json", { EVREG_PORT: "8080", EVREG_TOKEN: SECRET, EVREG_DELIVERY_DISABLE_AFTER: "off" }],
  table: ["config --data elsewhere", { EVREG_TOKEN: SECRET }],
  flags: ["config --port 9000 --log-level debug --json", { EVREG_PORT: "8080" }],
  state: ["config show --output jsonl", { STATE_DIRECTORY: "/var/lib/evreg" }],
  good: ["config check good.yaml --json"],
  goodTable: ["config check good.yaml"],
  bad: ["config check bad.yaml", { EVREG_PORT: "many" }],
  badJson: ["config check bad.yaml --json"],
};

beforeAll(async () => {
  mkdirSync(here);
  const good = join(here, "good.yaml");
  writeFileSync(good, `retention: {events: 90m}\nremote: {url: "https://x.example", token: ${SECRET}}\n`);
  // Whatever the umask is.
  chmodSync(good, 0o644);
  writeFileSync(
    join(here, "bad.yaml"),
    `prot: 80\nauth:\n  mode: none\nremote:\n  token: "${SECRET} twice"\n`,
  );
  writeFileSync(join(here, "ca.yaml"), "delivery: {ca: gone.pem}\n");
  writeFileSync(join(here, "tls.yaml"), "tls: {cert: gone.pem, key: gone.key}\n");
  writeFileSync(join(here, "evreg.config.yaml"), "delivery:\n  maxInFlight: 10\n");
  const done = Object.entries(COMMANDS).map(async ([name, [line, env = {}]]) => [
    name,
    await run(line, { env }),
  ]);
  outcomes = Object.fromEntries(await Promise.all(done)) as typeof outcomes;
});
afterAll(() => folder.remove());

interface Shown {
  readonly key: string;
  readonly value: unknown;
  readonly source: string;
  readonly place: string | null;
}

test("every key is shown with its value and source, and no secret is", () => {
  const { data, meta } = JSON.parse(outcomes["show"]!.stdout) as { data: Shown[]; meta: object };
  expect(data.map(({ key }) => key)).toEqual(CONFIG_KEYS.map(({ path }) => path));
  const of = (name: string) => data.find(({ key }) => key === name);
  expect(of("port")).toEqual({ key: "port", value: 8080, source: "environment", place: "EVREG_PORT" });
  const file = join(here, "evreg.config.yaml");
  expect(meta).toEqual({ file });
  expect(of("delivery.maxInFlight")).toMatchObject({ value: 10, source: "file", place: `${file}:2:16` });
  // A default that follows another key.
  expect(of("delivery.maxInFlightPerSubscription")).toMatchObject({
    value: 5,
    source: "default",
    place: null,
  });
  expect(of("delivery.disableAfter")).toMatchObject({ value: "off", source: "environment" });
  expect(of("remote.token")).toMatchObject({ value: "(not shown)", source: "environment" });
  expect(of("remote.url")).toMatchObject({ value: null, source: "default" });
  expect(outcomes["table"]?.stdout).toMatch(/^KEY +VALUE +SOURCE +PLACE$/m);
  expect(outcomes["table"]?.stdout).toMatch(/^data +\S+here\/elsewhere +flag +--data$/m);
  const { data: flagged } = JSON.parse(outcomes["flags"]!.stdout) as { data: Shown[] };
  expect(flagged).toContainEqual({ key: "port", value: 9000, source: "flag", place: "--port" });
  expect(flagged).toContainEqual({ key: "log.level", value: "debug", source: "flag", place: "--log-level" });
  for (const [name, { stdout, stderr }] of Object.entries(outcomes)) {
    expect(stdout + stderr, name).not.toContain(SECRET);
  }
});

test("the data folder that systemd names is shown with that source", () => {
  const lines = outcomes["state"]!.stdout.trimEnd().split("\n");
  const shown = lines.map((line) => JSON.parse(line) as Shown).find(({ key }) => key === "data");
  expect(shown).toMatchObject({ value: "/var/lib/evreg", source: "environment", place: "STATE_DIRECTORY" });
});

test("a configuration with mistakes is not shown, but all its mistakes are", async () => {
  spawnSync("mkfifo", [join(here, "pipe")]);
  await expectEach([
    ["config --port many", 2, "", /--port: port must be/],
    ["config show", 2, "", /EVREG_PORT: port must be/, { env: { EVREG_PORT: "many" } }],
    ["config check", 2, "", /EVREG_PORT/, { env: { EVREG_PORT: "many" } }],
    ["config check none.yaml", 2, "", /^Error: The configuration file \S+none\.yaml does not exist\. /],
    [
      "config check pipe",
      2,
      "",
      /^Error: pipe is a pipe, and only files are read; give what it holds on stdin/,
    ],
    ["config check -", 2, "", /^Error: stdin:2:1: prot /, { input: "port: 80\nprot: 1\n" }],
  ]);
});

test("a file is checked by itself, and each mistake has its line", () => {
  const file = join(here, "good.yaml");
  expect(outcomes["good"]).toMatchObject({ code: 0, stderr: "" });
  const warnings = process.platform === "win32" ? [] : [expect.stringContaining(`chmod 600 ${file}`)];
  const keys = ["retention.events", "remote.url", "remote.token"];
  expect(JSON.parse(outcomes["good"]!.stdout)).toEqual({ data: { file, keys, warnings } });
  expect(outcomes["goodTable"]?.stderr).toMatch(/^Warning: .*chmod 600 .*\nNo mistakes beside that\.\n$/);

  expect(outcomes["bad"]).toMatchObject({ code: 2, stdout: "" });
  expect(outcomes["bad"]?.stderr).toMatch(
    /bad\.yaml:1:1: prot .*port.*bad\.yaml:3:9: auth\.mode .*bad\.yaml:5:10/s,
  );
  expect(outcomes["bad"]?.stderr).not.toContain("EVREG_PORT");
  const { details } = JSON.parse(outcomes["badJson"]!.stderr) as { details: { problems: unknown } };
  expect(details.problems).toMatchObject([{ name: "prot" }, { name: "auth.mode" }, { name: "remote.token" }]);
});

test("a missing certificate is a warning in a checked file and a mistake at a start", async () => {
  const gone = `tls.cert: ${join(here, "gone.pem")} cannot be read (ENOENT).`;
  const warning = `Warning: ${gone} A server on this machine would not start with it.\n`;
  const env = { EVREG_TLS_CERT: "gone.pem", EVREG_TLS_KEY: "gone.key" };
  await expectEach([
    ["config check tls.yaml", 0, undefined, `${warning}No mistakes beside that.\n`],
    [
      "config check ca.yaml",
      0,
      undefined,
      /^Warning: delivery\.ca: \S+gone\.pem cannot be read \(ENOENT\)\./,
    ],
    ["config check", 2, "", /^Error: .*tls\.cert: \S+gone\.pem cannot be read \(ENOENT\)\./s, { env }],
  ]);
});

test("the example is the one that ships with evreg, and does not overwrite a file", async () => {
  const example = readFileSync(new URL("../../config.example.yaml", import.meta.url), "utf8");
  await expectEach([
    ["config example", 0, example, ""],
    ["config example --json", 0, `${JSON.stringify({ data: example })}\n`, ""],
    ["config example -o new.yaml", 0],
    ["config example -o new.yaml", 0],
    ["config check new.yaml", 0],
    ["config example -o good.yaml", 5, ""],
  ]);
  expect(readFileSync(join(here, "new.yaml"), "utf8")).toBe(example);
  expect(readFileSync(join(here, "good.yaml"), "utf8")).toContain("90m");
});
