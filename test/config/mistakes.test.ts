import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CONFIG_KEYS, KEY_BY_PATH } from "../../src/config/keys.ts";
import { loadConfig } from "../../src/config/load.ts";
import { EvregError } from "../../src/domain/error.ts";

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "evreg-config-"));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

type From = { file?: string; env?: Record<string, string>; flags?: object };

async function mistake({ file, env = {}, flags = {} }: From): Promise<string> {
  if (file !== undefined) writeFileSync(join(cwd, "evreg.config.yaml"), file);
  const error: unknown = await loadConfig({ flags, env, cwd }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(EvregError);
  return (error as EvregError).message.replaceAll(`${cwd}/`, "");
}

/** The whole message, or what it has in it. */
async function expectMistake(from: From, message: string | RegExp): Promise<void> {
  const printed = await mistake(from);
  if (typeof message === "string") expect(printed).toBe(message);
  else expect(printed).toMatch(message);
}

test("an unknown key is refused, and an old encryption key needs a new one", async () => {
  const almost = "c2VjcmV0LWtleS10aGF0LWlzLW5vdC0zMi1ieXRlcw==";
  const bad = await mistake({ env: { EVREG_ENCRYPTION_KEY: almost } });
  expect(bad).toMatch(/^EVREG_ENCRYPTION_KEY: encryption\.key must be a key of 32 bytes as base64 or hex/);
  const alone = await mistake({ env: { EVREG_ENCRYPTION_KEY_PREVIOUS: "ab".repeat(32) } });
  const inFile = await mistake({ file: `encryption: { key: ${almost} }` });
  expect(inFile).toMatch(/1:20: encryption\.key must be a key of 32 bytes/);
  expect(alone).toMatch(/^EVREG_ENCRYPTION_KEY_PREVIOUS: .*set EVREG_ENCRYPTION_KEY to the new one$/);
  for (const message of [bad, inFile, alone]) expect(message).not.toMatch(/c2VjcmV0|abab/);
});

describe("a file's mistake is reported with its key, line and column", () => {
  test.each([
    ["port: 70000", "1:7", "port", "70000"],
    ["port: '7480'", "1:7", "port", '"7480"'],
    ["port:", "1:6", "port", "null"],
    ["host: http://a", "1:7", "host", '"http://a"'],
    ["auth: { mode: of }", "1:15", "auth.mode", '"of"'],
    ["delivery:\n  allowHttp: yes", "2:14", "delivery.allowHttp", '"yes"'],
    [
      "delivery: { allowNetworks: [10.0.0.0/8, 10.0.0.0/33] }",
      "1:28",
      "delivery.allowNetworks",
      '["10.0.0.0/8","10.0.0.0/33"]',
    ],
    ["delivery: { allowNetworks: 10.0.0.0/8 }", "1:28", "delivery.allowNetworks", '"10.0.0.0/8"'],
    ["delivery: { disableAfter: 5 }", "1:27", "delivery.disableAfter", "5"],
    ["delivery: { retrySchedule: [0s, soon] }", "1:28", "delivery.retrySchedule", '["0s","soon"]'],
    ["delivery: { retrySchedule: [] }", "1:28", "delivery.retrySchedule", "[]"],
    ["delivery: { retrySchedule: [8d] }", "1:28", "delivery.retrySchedule", '["8d"]'],
    ["delivery: { retrySchedule: 5s }", "1:28", "delivery.retrySchedule", '"5s"'],
    ["delivery: { maxRetries: 21 }", "1:25", "delivery.maxRetries", "21"],
    ["limits: { payloadBytes: 1 }", "1:25", "limits.payloadBytes", "1"],
    ["retention: { events: 30 }", "1:22", "retention.events", "30"],
    ["retention: { events: 0d }", "1:22", "retention.events", '"0d"'],
    ["retention: { events: 90s }", "1:22", "retention.events", '"90s"'],
    ["retention: { events: 36501d }", "1:22", "retention.events", '"36501d"'],
    ["data: ''", "1:7", "data", '""'],
  ])("and what is allowed: %j", (file, place, path, value) => {
    const { allowed } = KEY_BY_PATH.get(path)!.kind;
    return expectMistake({ file }, `evreg.config.yaml:${place}: ${path} must be ${allowed}, not ${value}`);
  });

  test.each([
    ["remote: { url: 'ftp://a' }", /1:16: remote\.url must be an http: or https: address/],
    [
      "remote: { url: 'http://me:pw@a' }",
      "1:16: remote.url must be an http: or https: address without user name, query or fragment",
    ],
    ["hostt: a", "1:1: hostt is not a key of evreg; did you mean host?"],
    ["timeoutMs: 5", "1:1: timeoutMs is not a key of evreg; did you mean delivery.timeoutMs?"],
    [
      "delivery:\n  timeout_ms: 5",
      "2:3: delivery.timeout_ms is not a key of evreg; did you mean delivery.timeoutMs?",
    ],
    [
      "delivery.timeoutMs: 5",
      "1:1: delivery.timeoutMs is not a key of evreg; write it as timeoutMs inside delivery:",
    ],
    ["log:\n  wrong: 5", "2:3: log.wrong is not a key of evreg; here it takes level, format"],
    ["auth: token", "1:7: auth must be a mapping with the keys mode, anonymousPublish, bootstrapToken"],
    ["- a", /1:1: the file must be a mapping with the keys host, port/],
    ["port: 1\nport: 2", /2:1: this is not the YAML evreg reads: the key "port" is here twice/],
    ["port: [1", /this is not the YAML evreg reads/],
    ["port: !!js/function 'x'", /1:7: this is not the YAML evreg reads: Unresolved tag/],
    [
      "port: 1\n---\nport: 2",
      "2:1: this is not the YAML evreg reads: a second document begins here, and only one is read",
    ],
    [
      "port: 1\n? [a]\n: 2",
      "2:3: this is not the YAML evreg reads: a key must be a text, and this is a list",
    ],
    [
      "!!binary aGVsbG8=: 1",
      "1:10: this is not the YAML evreg reads: the key aGVsbG8= is no text as it stands; write it in quotes",
    ],
    [
      "ui: &ui\n  <<: *ui",
      "2:7: this is not the YAML evreg reads: *ui stands within &ui, which it would repeat without end",
    ],
    [`ui: &a x\nport: [${"*a,".repeat(10_001)}]`, /2:30008: .* its anchors are used more than 10,000 times/],
    ["ui: *other", "1:5: this is not the YAML evreg reads: no anchor &other stands before this *other"],
  ])("%j", (file, message) =>
    expectMistake({ file }, typeof message === "string" ? `evreg.config.yaml:${message}` : message),
  );

  test("endless aliases are reported", async () => {
    const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(9)}]`);
    const file = ["l0: &l0 [x]", ...levels, "delivery:", "  allowNetworks: *l9"].join("\n");
    expect(await mistake({ file })).toMatch(/:12:18: delivery\.allowNetworks must be a list/);
  });
});

describe("a variable's mistake is reported with the variable", () => {
  test.each([
    [{ EVREG_PORT: "http" }, 'EVREG_PORT: port must be a whole number from 0 to 65535, not "http"'],
    [
      { EVREG_LOG_LEVEL: "INFO" },
      'EVREG_LOG_LEVEL: log.level must be one of debug, info, warn, error, silent, not "INFO"',
    ],
    [{ SERVICE_ENVELOPE: "1MB" }, /^SERVICE_ENVELOPE: limits\.payloadBytes must be a whole number/],
    [{ EVREG_PROT: "1" }, "EVREG_PROT: this variable means nothing to evreg; did you mean EVREG_PORT?"],
    [{ EVREG_TIMEOUT: "1" }, /^EVREG_TIMEOUT: this variable means nothing to evreg/],
    [
      { EVREG_TLS_CERT: "c.pem" },
      "EVREG_TLS_CERT: tls.cert needs tls.key beside it: https takes a certificate and its key",
    ],
    [{ EVREG_TLS_KEY: "k.pem" }, /^EVREG_TLS_KEY: tls\.key needs tls\.cert/],
    [
      { EVREG_BOOTSTRAP_TOKEN: `evreg_${"0".repeat(36)}` },
      "EVREG_BOOTSTRAP_TOKEN: auth.bootstrapToken must be a token of evreg: evreg_, 30 letters or digits, and their 6 characters of checksum",
    ],
  ])("%j", (env, message) => expectMistake({ env }, message));

  test("an empty variable counts as unset, and those Kubernetes makes for a service named evreg are ignored", async () => {
    const names = [
      "PORT",
      "PORT_7480_TCP",
      "PORT_7480_TCP_ADDR",
      "SERVICE_HOST",
      "SERVICE_PORT_HTTP",
      "DB_PORT",
    ];
    const links = Object.fromEntries(names.map((name) => [`EVREG_${name}`, "tcp://10.0.0.1:7480"]));
    const { config } = await loadConfig({ cwd, env: { EVREG_HOST: "", ...links } });
    expect(config.host).toBe("127.0.0.1");
    expect(config.port).toBe(7480);
  });
});

describe("other mistakes", () => {
  test.each([
    [{ port: -1 }, "--port: port must be a whole number from 0 to 65535, not -1"],
    [{ "log-level": "loud" }, /^--log-level: log\.level must be one of/],
  ])("in a flag are reported with the flag: %j", (flags, message) => expectMistake({ flags }, message));

  test("are all reported at once", async () => {
    const file = "port: x\nnope: 1\n";
    const message = await mistake({ file, env: { EVREG_HOST: "a b" }, flags: { url: "nowhere" } });
    expect(message.split("\n").map((line) => line.trim().split(": ")[0])).toEqual([
      "The configuration has mistakes:",
      "--url",
      "EVREG_HOST",
      "evreg.config.yaml:1:7",
      "evreg.config.yaml:2:1",
    ]);
  });

  test("in a config.yaml of another program come with how to ignore the file", async () => {
    writeFileSync(join(cwd, "config.yaml"), "services: {}\n");
    expect(await mistake({})).toMatch(
      /config\.yaml is another program's, name evreg's own file with --config/,
    );
    const past = await loadConfig({ env: {}, cwd, configFile: "/dev/null" });
    expect(past.config.port).toBe(7480);
  });
});

describe("rules between keys", () => {
  test("auth may be off on a loopback host, and on no other", async () => {
    for (const host of ["127.0.0.1", "127.8.9.10", "localhost", "::1", "0:0:0:0:0:0:0:1"]) {
      const { config } = await loadConfig({ flags: { host }, env: { EVREG_AUTH_MODE: "off" }, cwd });
      expect(config.auth.mode).toBe("off");
    }
    for (const host of [
      "0.0.0.0",
      "::",
      "10.0.0.1",
      "evreg.example",
      "127.evil.example",
      "::ffff:10.0.0.1",
    ]) {
      const printed = await mistake({ flags: { host }, file: "auth:\n  mode: off\n" });
      expect(printed).toMatch(/^evreg\.config\.yaml:2:9: auth\.mode off is only for a loopback host/);
      expect(printed).toContain(host);
    }
  });
});

test("every refused value is reported with its own key, for every key", async () => {
  for (const key of CONFIG_KEYS) {
    const bad = key.secret === true ? "two words" : key.kind.isPath === true ? "a\0b" : "\u0007 no such";
    expect(await mistake({ env: { [key.env]: bad } })).toMatch(
      new RegExp(`^${key.env}: ${key.path} must be `),
    );
  }
});
