import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { EXIT } from "../../src/cli/exit-code.ts";
import { HELP_TOPICS, helpOn } from "../../src/cli/help-topics/topics.ts";
import { CONFIG_KEYS } from "../../src/config/schema.ts";
import { deliveryHeaders } from "../../src/delivery/signature.ts";
import { EXIT_CODE } from "../../src/domain/error.ts";
import { temporaryFolder } from "../support/program.ts";
import { runMany } from "../support/run-many.ts";

test.each(HELP_TOPICS)(
  "help on %s fits into 80 columns, and narrower ones where it is prose",
  async (topic) => {
    for (const line of (await helpOn(topic, 80)).split("\n"))
      expect(line.length, line).toBeLessThanOrEqual(80);
    if (topic === "signatures") return;
    for (const line of (await helpOn(topic, 40)).split("\n"))
      expect(line.length, line).toBeLessThanOrEqual(54);
  },
);

test("every exit code there is, and no other, has a meaning", async () => {
  const told = [...(await helpOn("exit-codes", 80)).matchAll(/^ {2,4}(\d+) {2}\S/gm)].map(([, code]) =>
    Number(code),
  );
  const known = new Set<number>([...Object.values(EXIT), ...Object.values(EXIT_CODE)]);
  expect(told).toEqual([...known].toSorted((a, b) => a - b));
});

test("every variable there is has a line of its own", async () => {
  const names = (await helpOn("environment", 80)).split("\n").filter((line) => /^[A-Z_]+$/.test(line));
  expect(names).toEqual(expect.arrayContaining(CONFIG_KEYS.map(({ env }) => env)));
  expect(names).toEqual(expect.arrayContaining(["EVREG_CONFIG", "EVREG_CONTEXT", "EVREG_CONFIG_DIR"]));
});

test("the example of a receiver takes what evreg signs, and nothing else", async () => {
  const text = await helpOn("signatures", 80);
  const code = /In Node:\n\n([\s\S]*?)\n\n\S/.exec(text)?.[1] ?? "";
  const folder = temporaryFolder();
  const file = join(folder.path, "receiver.mjs");
  writeFileSync(file, `${code.replaceAll(/^ {2}/gm, "")}\nexport { isGenuine };\n`);
  const { isGenuine } = (await import(pathToFileURL(file).href)) as {
    readonly isGenuine: (headers: object, body: Uint8Array, secret: string, nowMs: number) => boolean;
  };
  folder.remove();

  const nowMs = Date.parse("2026-01-01T00:00:00Z");
  const [secret, previousSecret, other] = [1, 2, 3].map(
    (fill) => `whsec_${Buffer.alloc(32, fill).toString("base64")}`,
  );
  const body = Buffer.from('{"event_id":"1"}');
  const sent = { eventId: 1, subscriptionId: 2, action: "a.b", attempt: 1, body, nowMs, version: "0.0.0" };
  const headersOf = (more: object) =>
    Object.fromEntries(
      Object.entries(deliveryHeaders({ ...sent, secret: secret!, ...more })).map(([name, value]) => [
        name.toLowerCase(),
        value,
      ]),
    );
  const headers = headersOf({});
  expect(isGenuine(headers, body, secret!, nowMs + 299_000)).toBe(true);
  expect(isGenuine(headersOf({ previousSecret }), body, secret!, nowMs)).toBe(true);
  expect(isGenuine(headersOf({ previousSecret }), body, previousSecret!, nowMs)).toBe(true);
  expect(isGenuine(headers, body, other!, nowMs)).toBe(false);
  expect(isGenuine(headers, Buffer.from('{"event_id":"2"}'), secret!, nowMs)).toBe(false);
  expect(isGenuine(headers, body, secret!, nowMs + 302_000)).toBe(false);
  expect(isGenuine({ ...headers, "webhook-timestamp": "soon" }, body, secret!, nowMs)).toBe(false);
  expect(isGenuine({ ...headers, "webhook-signature": "v1," }, body, secret!, nowMs)).toBe(false);
  for (const name of Object.keys(headers)) {
    if (name.startsWith("webhook-") || name.startsWith("x-evreg-s"))
      expect(text.toLowerCase()).toContain(name);
  }
});

test("help is for commands, topics of commands and topics of its own", async () => {
  const [topic, mistyped, command, commands, root, everything] = await runMany([
    ["help", "exit-codes"],
    ["help", "signature"],
    ["help", "tokens", "create"],
    ["help", "tokens"],
    ["help"],
    ["help", "-n"],
  ]);
  expect(topic).toEqual({ code: 0, stdout: await helpOn("exit-codes", 80), stderr: "" });
  expect(mistyped).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("evreg help signatures?"),
  });
  expect(command?.stdout).toMatch(/^Create a token\./);
  expect(commands?.stdout).toContain("tokens revoke");
  for (const name of HELP_TOPICS)
    expect(root?.stdout.replaceAll(/\s+/g, " ")).toContain(`evreg help ${name}`);
  expect(root?.stdout).not.toContain("tokens revoke");
  expect(everything?.stdout).toContain("tokens revoke");
});
