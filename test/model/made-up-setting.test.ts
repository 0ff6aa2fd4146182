import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

// A setting of subscriptions is one entry in their description. The program runs here as it is, with one entry more.

const fileHere = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const PROGRAM = fileHere("../../bin/dev.js");
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "evreg-setting-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function run(file: string, ...words: readonly string[]): string {
  const options = ["--disable-warning=ExperimentalWarning", "--import", fileHere("made-up-setting-child.ts")];
  // Threads have the setting as well.
  const env = { ...process.env, NODE_OPTIONS: options.join(" "), XDG_CONFIG_HOME: folder };
  return execFileSync(process.execPath, [file, ...words], { cwd: folder, env, encoding: "utf8" });
}

test("it is in bodies, answers, flags and the page's form", () => {
  expect(JSON.parse(run(fileHere("setting-places-child.ts")))).toEqual({
    schemas: ["NewSubscription", "SubscriptionUpdate", "Subscription"],
    refused: "jitter_ms",
    usage: "[--jitter DURATION]",
    form: ["Rate limit", "In flight", "Timeout", "Headers", "Jitter"],
    pulls: ["Headers", "Expires"],
    sent: expect.objectContaining({ jitter_ms: 2_000 }) as unknown,
  });
});

test("it is applied, changed, shown, exported and audited", () => {
  const names = "application: billing, subscription: invoices, action: order.created";
  writeFileSync(
    join(folder, "registry.yaml"),
    `actions: [{ action: order.created, application: shop, schemata: { type: object } }]
subscriptions: [{ ${names}, handler: "https://a.example", jitter_ms: 2s }]`,
  );
  run(PROGRAM, "apply", "-f", "registry.yaml", "--secrets-file", "-");
  expect(run(PROGRAM, "export")).toMatch(/^ {4}jitter_ms: 2000$/m);
  expect(run(PROGRAM, "subscriptions", "update", "billing/invoices", "--jitter", "3s")).toMatch(
    /^Jitter +up to 3s$/m,
  );
  expect(run(PROGRAM, "audit")).toContain("jitter_ms 2000 → 3000");
  const removed = run(PROGRAM, "subscriptions", "update", "billing/invoices", "--jitter", "none", "--json");
  expect(JSON.parse(removed)).toMatchObject({ data: { jitter_ms: null } });
});
