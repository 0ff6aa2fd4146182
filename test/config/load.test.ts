import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadConfig, type LoadedConfig, type LoadOptions } from "../../src/config/load.ts";
import { EvregError } from "../../src/domain/error.ts";
import { mintToken } from "../../src/domain/token-secret.ts";

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "evreg-config-"));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function load(options: Partial<LoadOptions> = {}): Promise<LoadedConfig> {
  return loadConfig({ env: {}, cwd, ...options });
}

/** The message of the refusal; fails the test when nothing is refused. */
async function refusal(options: Partial<LoadOptions>): Promise<string> {
  const error = await load(options).then(
    () => undefined,
    (failure: unknown) => failure,
  );
  expect(error).toBeInstanceOf(EvregError);
  expect((error as EvregError).code).toBe("usage");
  return (error as EvregError).message;
}

function put(name: string, ...lines: string[]): string {
  const path = join(cwd, name);
  writeFileSync(path, `${lines.join("\n")}\n`);
  return path;
}

describe("precedence", () => {
  test("flags win over variables, variables over the file, the file over defaults", async () => {
    const file = put(
      "evreg.config.yaml",
      "port: 1",
      "host: 127.0.0.2",
      "log:",
      "  level: debug",
      "  format: json",
    );
    const { config, places } = await load({
      flags: { port: 3 },
      env: { EVREG_PORT: "2", EVREG_LOG_LEVEL: "warn" },
    });
    expect(config.port).toBe(3);
    expect(config.log).toEqual({ level: "warn", format: "json" });
    expect(config.host).toBe("127.0.0.2");
    expect(config.shutdownGraceMs).toBe(10_000);
    expect(Object.fromEntries([...places].map(([key, { place }]) => [key, place]))).toEqual({
      port: "--port",
      "log.level": "EVREG_LOG_LEVEL",
      "log.format": `${file}:5:11`,
      host: `${file}:2:7`,
    });
  });

  test("a variable holds as text what a file would have: paths, switches, times, lists, addresses", async () => {
    const { config } = await load({
      env: {
        EVREG_PORT: "0",
        EVREG_TLS_CERT: "cert.pem",
        EVREG_TLS_KEY: "/etc/key.pem",
        EVREG_UI_ENABLED: "false",
        EVREG_ENCRYPTION_KEY: "ab".repeat(32),
        EVREG_ENVELOPE: "2048",
        EVREG_RETENTION_EVENTS: " 36h ",
        EVREG_RETENTION_AUDIT: "off",
        EVREG_DELIVERY_ALLOW_HTTP: "1",
        EVREG_DELIVERY_ALLOW_NETWORKS: "10.0.0.0/8, fd00::/8",
        EVREG_DELIVERY_RETRY_SCHEDULE: "0s 5m",
        EVREG_URL: "https://evreg.example/base/",
      },
    });
    expect(config).toMatchObject({
      port: 0,
      tls: { cert: join(cwd, "cert.pem"), key: "/etc/key.pem" },
      ui: { enabled: false },
      encryption: { key: "ab".repeat(32) },
      limits: { payloadBytes: 2048 },
      retention: { events: 36 * 3_600_000, audit: 0 },
      delivery: {
        allowHttp: true,
        allowNetworks: ["10.0.0.0/8", "fd00::/8"],
        retrySchedule: [0, 300_000],
      },
      remote: { url: "https://evreg.example/base" },
    });
  });

  test("the configuration is frozen at every level", async () => {
    const { config } = await load();
    const isLeft = (part: unknown): boolean =>
      !Object.isFrozen(part) || (typeof part === "object" && Object.values(part!).some(isLeft));
    expect(isLeft(config)).toBe(false);
  });

  test.each([
    ["1m", 60_000],
    ["90m", 5_400_000],
    ["36500d", 3_153_600_000_000],
  ])("a time is read into milliseconds, and off means none: %s", async (time, ms) => {
    put(
      "evreg.config.yaml",
      `retention: { events: ${time}, audit: off }`,
      `delivery: { disableAfter: ${time} }`,
    );
    const { config } = await load();
    expect(config.retention).toEqual({ audit: 0, events: ms });
    expect(config.delivery.disableAfter).toBe(ms);
  });

  test("SERVICE_ENVELOPE means EVREG_ENVELOPE", async () => {
    expect((await load({ env: { SERVICE_ENVELOPE: "77" } })).config.limits.payloadBytes).toBe(77);
    const both = await load({ env: { SERVICE_ENVELOPE: "77", EVREG_ENVELOPE: "77" } });
    expect(both.config.limits.payloadBytes).toBe(77);
    const message = await refusal({ env: { SERVICE_ENVELOPE: "78", EVREG_ENVELOPE: "77" } });
    expect(message).toMatch(/EVREG_ENVELOPE and SERVICE_ENVELOPE both set limits\.payloadBytes/);
  });
});

describe("the data folder", () => {
  test("is .evreg in the working directory, or the first of STATE_DIRECTORY", async () => {
    expect((await load()).config.data).toBe(join(cwd, ".evreg"));
    const { config } = await load({ env: { STATE_DIRECTORY: "/var/lib/evreg:/var/lib/other" } });
    expect(config.data).toBe("/var/lib/evreg");
  });

  test("a relative path starts at the working directory, in a file at that file's folder", async () => {
    expect((await load({ flags: { data: "a" } })).config.data).toBe(join(cwd, "a"));
    mkdirSync(join(cwd, "etc"));
    const file = put("etc/evreg.yaml", "data: ../b");
    expect((await load({ configFile: file })).config.data).toBe(join(cwd, "b"));
  });
});

describe("finding the file", () => {
  test.each(["evreg.config.yaml", "evreg.config.json", ".evregrc", ".evregrc.yml"])("%s", async (name) => {
    const file = put(name, name.endsWith("json") ? '{ "port": 5 }' : "port: 5");
    const loaded = await load();
    expect(loaded.config.port).toBe(5);
    expect(loaded.file).toBe(file);
  });

  test("config.yaml is looked for in the data folder, then next to it", async () => {
    put("config.yaml", "port: 5");
    expect((await load()).config.port).toBe(5);
    mkdirSync(join(cwd, ".evreg"));
    put(".evreg/config.yaml", "port: 6");
    expect((await load()).config.port).toBe(6);
    mkdirSync(join(cwd, "elsewhere"));
    expect((await load({ flags: { data: join(cwd, "elsewhere/data") } })).config.port).toBe(7480);
  });

  test("--config wins over EVREG_CONFIG, and both over a search", async () => {
    put("evreg.config.yaml", "port: 5");
    put("six.yaml", "port: 6");
    put("seven.yaml", "port: 7");
    expect((await load({ env: { EVREG_CONFIG: "six.yaml" } })).config.port).toBe(6);
    const both = await load({ configFile: "seven.yaml", env: { EVREG_CONFIG: "six.yaml" } });
    expect(both.config.port).toBe(7);
  });

  test("a named file that is missing or not data is an error", async () => {
    expect(await refusal({ configFile: "none.yaml" })).toBe(
      `The configuration file ${join(cwd, "none.yaml")} does not exist. Name another with --config or EVREG_CONFIG.`,
    );
    put("evreg.config.js", "throw new Error('this ran')");
    expect(await refusal({ env: { EVREG_CONFIG: "evreg.config.js" } })).toMatch(/the file must be a mapping/);
  });

  test("no code next to it runs, and parent folders are not searched", async () => {
    const home = process.cwd();
    const mark = globalThis as { evregCodeRan?: boolean };
    put("evreg.config.js", "globalThis.evregCodeRan = true; module.exports = { port: 1 }");
    mkdirSync(join(cwd, ".config"));
    put(".config/config.js", "globalThis.evregCodeRan = true; module.exports = {}");
    put(".config/config.yaml", "cosmiconfig: { searchPlaces: [other.yaml], mergeSearchPlaces: true }");
    put("other.yaml", "port: 2");
    put("package.json", '{ "evreg": { "port": 3 }, "cosmiconfig": { "searchPlaces": ["other.yaml"] } }');
    mkdirSync(join(cwd, "inner"));
    put("evreg.config.yaml", "port: 4");
    process.chdir(cwd);
    try {
      expect((await load()).config.port).toBe(4);
      expect((await load({ cwd: join(cwd, "inner") })).config.port).toBe(7480);
    } finally {
      process.chdir(home);
    }
    expect(mark.evregCodeRan).toBeUndefined();
  });

  test("a file cannot include another", async () => {
    put("other.yaml", "port: 2");
    const file = put("evreg.config.yaml", "$import: ./other.yaml");
    expect(await refusal({})).toContain(`${file}:1:1: $import is not a key of evreg`);
  });

  test("an empty file sets nothing", async () => {
    const file = put("evreg.config.yaml", "");
    const loaded = await load();
    expect(loaded.file).toBe(file);
    expect(loaded.config.port).toBe(7480);
  });

  test.skipIf(process.getuid?.() === 0)("an unreadable file is an error", async () => {
    const file = put("evreg.config.yaml", "port: 1");
    chmodSync(file, 0o000);
    expect(await refusal({})).toContain(`${file} cannot be read (EACCES). Run evreg as the user`);
  });

  test.skipIf(process.getuid?.() === 0)("an unreadable folder is an error", async () => {
    const folder = join(cwd, "closed");
    mkdirSync(folder);
    chmodSync(folder, 0o000);
    const message = await refusal({ flags: { data: folder } });
    chmodSync(folder, 0o700);
    expect(message).toContain(`${join(folder, "config.yaml")} cannot be read (EACCES).`);
  });
});

describe("secrets", () => {
  test("come from a file that a variable names", async () => {
    put("token.txt", "  the-token ");
    const minted = mintToken((length) => Buffer.alloc(length, 1));
    put("first.txt", minted);
    const { config } = await load({
      env: { EVREG_TOKEN_FILE: "token.txt", EVREG_BOOTSTRAP_TOKEN_FILE: join(cwd, "first.txt") },
    });
    expect(config.remote.token).toBe("the-token");
    expect(config.auth.bootstrapToken).toBe(minted);
  });

  test("that file must exist, not be empty, and not contradict the plain variable", async () => {
    put("empty.txt", "");
    put("token.txt", "one");
    expect(await refusal({ env: { EVREG_TOKEN_FILE: "gone.txt" } })).toBe(
      `EVREG_TOKEN_FILE: the file ${join(cwd, "gone.txt")} that should hold remote.token cannot be read (ENOENT)`,
    );
    expect(await refusal({ env: { EVREG_TOKEN_FILE: "empty.txt" } })).toMatch(/is empty$/);
    const message = await refusal({ env: { EVREG_TOKEN_FILE: "token.txt", EVREG_TOKEN: "two" } });
    expect(message).toMatch(/EVREG_TOKEN and EVREG_TOKEN_FILE both set remote\.token/);
  });

  test("never appear in a message", async () => {
    const file = put(
      "evreg.config.yaml",
      "remote:",
      "  token: has a space",
      "auth:",
      "  bootstrapToken: 4711",
    );
    const message = await refusal({ env: { EVREG_BOOTSTRAP_TOKEN: "pass word" }, configFile: file });
    expect(message).not.toMatch(/has a|4711|pass word/);
    expect(message.match(/must be a (?:text|token) of/g)).toHaveLength(3);
  });

  test("are sent only to the server of the same file: a token", async () => {
    put("evreg.config.yaml", "remote:", "  url: https://a.example", "  token: theirs");
    expect((await load()).config.remote).toEqual({
      allowInsecureToken: false,
      url: "https://a.example",
      token: "theirs",
    });
    const other = await load({ flags: { url: "https://b.example" } });
    expect(other.config.remote).toEqual({ allowInsecureToken: false, url: "https://b.example" });
    const own = await load({ flags: { url: "https://b.example" }, env: { EVREG_TOKEN: "mine" } });
    expect(own.config.remote).toEqual({ allowInsecureToken: false, url: "https://b.example", token: "mine" });
  });

  test("an address that only a found file names is reported with its place", async () => {
    const file = put("evreg.config.yaml", "remote:", "  url: https://a.example");
    const env = { EVREG_TOKEN: "mine" };
    expect((await load({ env })).unnamedUrlPlace).toBe(`${file}:2:8`);
    const meant: Partial<LoadOptions>[] = [
      { configFile: file },
      { env: { EVREG_CONFIG: file } },
      { env: { EVREG_URL: "https://a.example" } },
      { flags: { url: "https://a.example" } },
    ];
    for (const options of meant) {
      const loaded = await load({ ...options, env: { ...env, ...options.env } });
      expect.soft(loaded.unnamedUrlPlace).toBeUndefined();
      expect.soft(loaded.config.remote).toMatchObject({ url: "https://a.example", token: "mine" });
    }
  });

  test.skipIf(process.platform === "win32")("get a warning in a file that others may read", async () => {
    const file = put("evreg.config.yaml", "remote:", "  token: theirs");
    chmodSync(file, 0o644);
    expect((await load()).warnings).toEqual([
      `${file} holds remote.token and others on this machine may read it; run: chmod 600 ${file}`,
    ]);
    chmodSync(file, 0o600);
    expect((await load()).warnings).toEqual([]);
  });
});
