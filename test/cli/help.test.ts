import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { HELP_TOPICS, helpOn } from "../../src/cli/help/topics.ts";
import { EXIT } from "../../src/cli/usage-errors.ts";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { ATTEMPT_ERROR_CODES, DELIVERY_STATUSES, TLS_REASONS } from "../../src/model/delivery.ts";
import { EXIT_CODE } from "../../src/domain/error.ts";
import { temporaryFolder } from "../support/program.ts";
import { runMany } from "../support/run-many.ts";
import { signedRequest } from "../support/signed-request.ts";

test.each(HELP_TOPICS)(
  "help on %s fits into 80 columns, and narrower ones where it is prose",
  async (topic) => {
    for (const line of (await helpOn(topic, 80)).split("\n"))
      expect(line.length, line).toBeLessThanOrEqual(80);
    if (topic === "signatures" || topic === "getting-started") return;
    for (const line of (await helpOn(topic, 40)).split("\n"))
      expect(line.length, line).toBeLessThanOrEqual(54);
  },
);

test("the exit codes listed are all there are, each with a meaning", async () => {
  const told = [...(await helpOn("exit-codes", 80)).matchAll(/^ {2,4}(\d+) {2}\S/gm)].map(([, code]) =>
    Number(code),
  );
  const known = new Set<number>([...Object.values(EXIT), ...Object.values(EXIT_CODE)]);
  expect(told).toEqual([...known].toSorted((a, b) => a - b));
});

test("every state and error code of a delivery has a meaning", async () => {
  const text = await helpOn("delivery-states", 80);
  const told = [...text.matchAll(/^ {2}([a-z_]+)\n {6}\S/gm)].map(([, name]) => name);
  expect(told).toEqual([...DELIVERY_STATUSES, ...ATTEMPT_ERROR_CODES]);
});

test("every reason why TLS fails has a remedy", async () => {
  const text = (await helpOn("delivery-states", 80)).replaceAll(/\s+/g, " ");
  for (const reason of TLS_REASONS) expect(text).toMatch(new RegExp(`\\b${reason} \\([a-z]`));
});

test("every environment variable has a line of its own", async () => {
  const names = (await helpOn("environment", 80)).split("\n").filter((line) => /^[A-Z_]+$/.test(line));
  expect(names).toEqual(expect.arrayContaining(CONFIG_KEYS.map(({ env }) => env)));
  expect(names).toEqual(expect.arrayContaining(["EVREG_CONFIG", "EVREG_CONTEXT", "EVREG_CONFIG_DIR"]));
});

describe("the examples of receivers accept what evreg signs, and nothing else", () => {
  const nowMs = Date.parse("2026-01-01T00:00:00Z");
  const [secret, previousSecret, other] = [1, 2, 3].map(
    (fill) => `whsec_${Buffer.alloc(32, fill).toString("base64")}`,
  );
  const { body } = signedRequest({ secret: secret!, nowMs });
  const headersOf = (more: object): Record<string, string> => {
    const { headers } = signedRequest({ secret: secret!, nowMs, ...more });
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  };
  const headers = headersOf({});
  const cases: readonly [headers: object, body: Buffer, secret: string, nowMs: number, genuine: boolean][] = [
    [headers, body, secret!, nowMs + 299_000, true],
    [headersOf({ previousSecret }), body, secret!, nowMs, true],
    [headersOf({ previousSecret }), body, previousSecret!, nowMs, true],
    [headers, body, other!, nowMs, false],
    [headers, Buffer.from('{"event_id":"2"}'), secret!, nowMs, false],
    [headers, body, secret!, nowMs + 302_000, false],
    [{ ...headers, "webhook-timestamp": "soon" }, body, secret!, nowMs, false],
    [{ ...headers, "webhook-signature": "v1," }, body, secret!, nowMs, false],
    [{ ...headers, "webhook-signature": "v1,\u00e9" }, body, secret!, nowMs, false],
    [{ "webhook-timestamp": headers["webhook-timestamp"] }, body, secret!, nowMs, false],
    [{}, body, secret!, nowMs, false],
  ];
  const expected = cases.map((one) => one[4]);
  const folder = temporaryFolder();
  afterAll(() => folder.remove());

  async function example(language: string): Promise<string> {
    const text = await helpOn("signatures", 80);
    for (const name of Object.keys(headers)) {
      if (name.startsWith("webhook-") || name.startsWith("x-evreg-s"))
        expect(text.toLowerCase()).toContain(name);
    }
    const code = text.split(`In ${language}:\n\n`)[1]?.split(/\n\n(?=\S)/)[0] ?? "";
    return code.replaceAll(/^ {2}/gm, "");
  }

  test("in Node", async () => {
    const file = join(folder.path, "receiver.mjs");
    writeFileSync(file, `${await example("Node")}\nexport { isGenuine };\n`);
    const { isGenuine } = (await import(pathToFileURL(file).href)) as {
      readonly isGenuine: (headers: object, body: Uint8Array, secret: string, nowMs: number) => boolean;
    };
    expect(cases.map(([of, bytes, key, ms]) => isGenuine(of, bytes, key, ms))).toEqual(expected);
  });

  const hasPython = spawnSync("python3", ["--version"]).status === 0;
  test.skipIf(!hasPython)("in Python (skipped where there is none)", async () => {
    const asked = `import json, sys
print(json.dumps([is_genuine(h, b.encode(), s, ms / 1000) for h, b, s, ms in json.load(sys.stdin)]))`;
    const input = JSON.stringify(cases.map(([of, bytes, key, ms]) => [of, String(bytes), key, ms]));
    const code = `${await example("Python")}\n${asked}\n`;
    const { stdout, stderr } = spawnSync("python3", ["-c", code], { input, encoding: "utf8" });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual(expected);
  });
});

test("help exists for commands, topics of commands and topics of its own", async () => {
  const [topic, mistyped, command, commands, flagged, own, two, none, root, everything] = await runMany([
    ["help", "exit-codes"],
    ["help", "signature"],
    ["help", "tokens", "create"],
    ["help", "tokens"],
    ["tokens", "--help"],
    ["help", "help"],
    ["help", "signatures", "environment"],
    ["help", "nosuch"],
    ["help"],
    ["help", "-n"],
  ]);
  expect(topic).toEqual({ code: 0, stdout: await helpOn("exit-codes", 80), stderr: "" });
  expect(mistyped).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("evreg help has: getting-started, delivery-states, signatures"),
  });
  expect(command?.stdout).toMatch(/^Create a token\./);
  expect(commands?.stdout).toContain("tokens revoke");
  expect(flagged?.stdout).toBeDefined();
  expect(commands).toEqual(flagged);
  expect(own?.stdout).toContain("help [COMMAND | TOPIC]");
  expect(two).toMatchObject({ code: 2, stderr: expect.stringContaining("One topic at a time") });
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining("tokens, trigger, whoami.") });
  for (const name of HELP_TOPICS) expect(none?.stderr).toContain(name);
  for (const name of HELP_TOPICS)
    expect(root?.stdout.replaceAll(/\s+/g, " ")).toContain(`evreg help ${name}`);
  expect(root?.stdout).not.toContain("tokens revoke");
  expect(everything?.stdout).toContain("tokens revoke");
});
