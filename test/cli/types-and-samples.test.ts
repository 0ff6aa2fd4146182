import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { escapeControlKeepingLines } from "../../src/cli/io/text.ts";
import { compilerComplaints } from "../support/typescript.ts";
import { useServed } from "./served.ts";

const USER = {
  type: "object",
  required: ["id", "email"],
  properties: {
    id: { type: "string", format: "uuid", description: "Never changes." },
    email: { type: "string", format: "email" },
    plan: { enum: ["free", "paid"] },
  },
  additionalProperties: false,
};
const PAID = { type: "object", required: ["total"], properties: { total: { type: "number", minimum: 1 } } };
const only = (letter: string, at: number) => ({ not: { pattern: `^.{${30 + at}}[^${letter}]` } });
/** Too hard to be found by chance: only an example says what it allows. */
const HARD = {
  type: "object",
  required: ["code"],
  properties: {
    code: { type: "string", pattern: "^[a-z]{40}$", allOf: "qxqxqxqxqx".split("").map(only) },
  },
};

/** What would act on a terminal. */
const NAME = "a\u009b31m\u202eb";

const served = useServed(async ({ evreg }) => {
  const create = (action: string, schemata: Record<string, unknown>) =>
    evreg.actions.create({ action, application: "shop", schemata });
  await create("user.created", USER);
  await create("order.paid", PAID);
  await create("hostile", {
    required: [NAME],
    properties: { [NAME]: { const: NAME } },
    additionalProperties: false,
  });
  await create("never", { type: "object", required: ["a"], properties: { a: false } });
});
const { folder, run, json } = served;

test(
  "types are a file that compiles, in which the action of a delivery determines its payload",
  { timeout: 60_000 },
  async () => {
    const [all, one, document, missing, language] = await Promise.all([
      run("actions types"),
      run("actions types user.created order.paid user.created --lang typescript"),
      json<string>("actions types order.paid"),
      run("actions types user.created no.such"),
      run("actions types --lang cobol"),
    ]);
    expect(all).toMatchObject({ code: 0, stderr: "" });
    expect(one.stdout).not.toContain("type Never");
    expect(all.stdout.indexOf("type OrderPaid")).toBeLessThan(all.stdout.indexOf("type UserCreated"));
    expect(document.data).toContain("export type OrderPaid = {\n  total: number;\n};");
    expect(missing).toMatchObject({ code: 3, stdout: "" });
    expect(language).toMatchObject({ code: 2, stdout: "" });

    const use = `
function receive(delivery: Delivery): string {
  const place: [string, string, number] = [delivery.event_id, delivery.timestamp, delivery.delivery_attempt];
  switch (delivery.action) {
    case "user.created": {
      const plan: "free" | "paid" | undefined = delivery.payload.plan;
      return delivery.payload.email + plan + place;
    }
    case "order.paid":
      return delivery.payload.total.toFixed(2);
    default: {
      const none: never = delivery;
      return none;
    }
  }
}
const paid: EventPayloads["order.paid"] = { total: 7 };
export const used = [receive, paid];
`;
    expect(await compilerComplaints(one.stdout + use)).toEqual([]);
    const wrong = use
      .replace("delivery.payload.email", "delivery.payload.emial")
      .replace("toFixed(2)", "toUpperCase()")
      .replace("  switch", '  if (delivery.action === "order.piad") return "";\n  switch')
      .replace("{ total: 7 }", "{}");
    const complaints = (await compilerComplaints(one.stdout + wrong)).join("\n");
    for (const slip of ["'emial'", "'toUpperCase'", '"order.piad"', "'total' is missing"]) {
      expect(complaints).toContain(slip);
    }
  },
);

test("--out writes the file, and does not touch one that is the same", async () => {
  const file = join(folder, "events.ts");
  const first = await run("actions types order.paid --out events.ts");
  expect(first).toMatchObject({ code: 0, stdout: "", stderr: "Wrote the types of 1 action.\n" });
  expect(readFileSync(file, "utf8")).toBe((await run("actions types order.paid")).stdout);
  const { mtimeMs } = statSync(file);
  expect((await run("actions types order.paid --out events.ts")).code).toBe(0);
  expect(statSync(file).mtimeMs).toBe(mtimeMs);
  writeFileSync(file, "old");
  await run("actions types --out events.ts");
  expect(readFileSync(file, "utf8")).toContain("UserCreated");
  const nowhere = await run("actions types --out no/such/events.ts");
  expect(nowhere).toMatchObject({ code: 2, stdout: "" });
  expect(nowhere.stderr).toContain("There is no folder for no/such/events.ts");
});

test("a sample is a payload that can be published, the same for the same seed", async () => {
  const [one, again, other, some] = await Promise.all([
    run("actions sample user.created --seed 7"),
    run("actions sample user.created --seed 7"),
    run("actions sample user.created --seed 8"),
    run("actions sample user.created"),
  ]);
  expect(one).toMatchObject({ code: 0, stderr: "" });
  expect(again.stdout).toBe(one.stdout);
  expect(other.stdout).not.toBe(one.stdout);
  const seed = /^The same again: --seed (\d+)\n$/.exec(some.stderr)?.[1] ?? "";
  expect((await run(["actions", "sample", "user.created", "--seed", seed])).stdout).toBe(some.stdout);
  const published = await run("publish user.created -", { input: one.stdout });
  expect(published).toMatchObject({ code: 0 });
});

test("a sample cannot control a terminal, and keeps its value", async () => {
  const text = await run("actions sample hostile --seed 1");
  const line = await run("actions sample hostile --seed 1 --output jsonl");
  for (const { stdout } of [text, line]) expect(escapeControlKeepingLines(stdout)).toBe(stdout);
  expect(JSON.parse(text.stdout)).toEqual({ [NAME]: NAME });
  expect(JSON.parse(line.stdout)).toEqual({ action: "hostile", payload: { [NAME]: NAME } });
});

test("several samples are events, one per line, as a batch takes them", async () => {
  const lines = await run("actions sample order.paid --count 25 --seed 1 --output jsonl");
  expect(lines.stdout.trimEnd().split("\n")).toHaveLength(25);
  expect(new Set(lines.stdout.split("\n")).size).toBeGreaterThan(20);
  const { meta: counts } = await json("publish --batch -", {
    input: lines.stdout,
  });
  expect(counts).toMatchObject({ accepted: 25 });
  const document = await json<object[]>("actions sample order.paid --count 25 --seed 1");
  expect(document.meta).toEqual({ revision: 1, seed: 1 });
  expect(document.data.map((event) => `${JSON.stringify(event)}\n`).join("")).toBe(lines.stdout);
});

test("where no payload is found, the output says so and what helps", async () => {
  const [never, publish, unknown, none, many] = await Promise.all([
    run("actions sample never"),
    run("trigger never"),
    run("actions sample no.such"),
    run("actions sample order.paid --count 0"),
    run("actions sample order.paid --count 1001"),
  ]);
  for (const outcome of [never, publish]) {
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain("No payload that conforms to the schema of never was found.");
    expect(outcome.stderr).toContain('("examples": [{…}])');
  }
  expect([unknown.code, none.code, many.code]).toEqual([3, 2, 2]);
  // Doing what it says helps.
  await served.evreg.actions.create({ action: "hard", application: "shop", schemata: HARD });
  expect((await run("actions sample hard")).code).toBe(1);
  await served.evreg.actions.update("hard", {
    schemata: { ...HARD, examples: [{ code: `${"a".repeat(30)}qxqxqxqxqx` }] },
  });
  expect((await run("actions sample hard")).stdout).toContain(`${"a".repeat(30)}qxqxqxqxqx`);
});
