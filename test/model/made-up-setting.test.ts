import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

// A setting of subscriptions is one entry in their description. The program runs here from a copy of its sources whose
// description has one entry more, as a developer would write it.

const ENTRY = `
  jitter_ms: {
    ...setting({ type: ["integer", "null"], minimum: 100, maximum: 60_000, description: "How they are spread." }),
    only: { mode: "push", why: "a consumer claims when it wants" },
    kind: DURATION,
    title: "Jitter",
    words: (span) => \`up to \${span}\`,
    flag: "How far attempts are spread, such as 2s, or none.",
    group: PACE,
  },
} as const satisfies Fields;`;
const END = "\n} as const satisfies Fields;";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
let folder = "";
let copy = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "evreg-setting-"));
  copy = join(folder, "evreg");
  for (const part of ["bin", "src", "package.json", "test/model"]) {
    cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const file = join(copy, "src/model/subscription.ts");
  const description = readFileSync(file, "utf8");
  expect(description.split(END)).toHaveLength(2);
  writeFileSync(
    file,
    description.replace(END, () => ENTRY),
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

function run(file: string, ...words: readonly string[]): string {
  const env = {
    ...process.env,
    NODE_OPTIONS: "--disable-warning=ExperimentalWarning",
    XDG_CONFIG_HOME: folder,
  };
  return execFileSync(process.execPath, [join(copy, file), ...words], { cwd: folder, env, encoding: "utf8" });
}

/** Answers what each of the command lines prints. */
function runLines(...lines: readonly string[]): readonly string[] {
  const words = JSON.stringify(lines.map((line) => line.split(" ")));
  return run("test/model/command-lines-child.ts", words).split("\0");
}

test("it is in bodies, answers, flags and the page's form", () => {
  expect(JSON.parse(run("test/model/setting-places-child.ts"))).toEqual({
    schemas: ["NewSubscription", "SubscriptionUpdate", "Subscription"],
    refused: "jitter_ms",
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
  const [, exported, changed, audit, removed] = runLines(
    "apply -f registry.yaml",
    "export",
    "subscriptions update billing/invoices --jitter 3s",
    "audit",
    "subscriptions update billing/invoices --jitter none --json",
  );
  expect(exported).toMatch(/^ {4}jitter_ms: 2000$/m);
  expect(changed).toMatch(/^Jitter +up to 3s$/m);
  expect(audit).toContain("jitter_ms 2000 → 3000");
  expect(JSON.parse(removed!)).toMatchObject({ data: { jitter_ms: null } });
});
