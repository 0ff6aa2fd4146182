import { expect, test } from "vitest";
import { escapeControlKeepingLines } from "../../src/cli/io/text.ts";
import { register } from "../support/records.ts";
import { useServed } from "../support/served.ts";

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
  await register(evreg, "user.created", USER);
  await register(evreg, "order.paid", PAID);
  const named = { [NAME]: { const: NAME } };
  await register(evreg, "hostile", { required: [NAME], properties: named, additionalProperties: false });
  await register(evreg, "never", { type: "object", required: ["a"], properties: { a: false } });
});
const { run, json, expectEach, runEach } = served;

test("a sample is a payload that can be published, the same for the same seed", async () => {
  const sample = "actions sample user.created";
  const one = await run(`${sample} --seed 7`);
  const [other, some] = await runEach(`${sample} --seed 8`, sample);
  expect(other?.stdout).not.toBe(one.stdout);
  const seed = /^The same again: --seed (\d+)\n$/.exec(some?.stderr ?? "")?.[1] ?? "";
  await expectEach([
    [`${sample} --seed 7`, 0, one.stdout, ""],
    [`${sample} --seed ${seed}`, 0, some?.stdout],
    ["publish user.created -", 0, undefined, undefined, { input: one.stdout }],
  ]);
});

test("a sample cannot control a terminal, and keeps its value", async () => {
  const sample = "actions sample hostile --seed 1";
  const [text, line] = await runEach(sample, `${sample} --output jsonl`);
  for (const one of [text!, line!]) expect(escapeControlKeepingLines(one.stdout)).toBe(one.stdout);
  expect(JSON.parse(text!.stdout)).toEqual({ [NAME]: NAME });
  expect(JSON.parse(line!.stdout)).toEqual({ action: "hostile", payload: { [NAME]: NAME } });
});

test("several samples are events, one per line, as a batch takes them", async () => {
  const sample = "actions sample order.paid --count 25 --seed 1";
  const { stdout: lines } = await run(`${sample} --output jsonl`);
  expect(lines.trimEnd().split("\n")).toHaveLength(25);
  expect(new Set(lines.split("\n")).size).toBeGreaterThan(20);
  expect((await json("publish --batch -", { input: lines })).meta).toMatchObject({ accepted: 25 });
  const document = await json<object[]>(sample);
  expect(document.meta).toEqual({ revision: 1, seed: 1 });
  expect(document.data.map((event) => `${JSON.stringify(event)}\n`).join("")).toBe(lines);
});

test("where no payload is found, the output says so and what helps", async () => {
  const none = /No payload that conforms to the schema of never was found\..*\("examples": \[\{…\}\]\)/s;
  await register(served.evreg, "hard", HARD);
  await expectEach([
    ["actions sample never", 1, "", none],
    ["actions sample no.such", 3],
    ["actions sample order.paid --count 0", 2],
    ["actions sample order.paid --count 1001", 2],
    ["actions sample hard", 1],
  ]);
  // Doing what it says helps.
  const code = `${"a".repeat(30)}qxqxqxqxqx`;
  await served.evreg.actions.update("hard", { schemata: { ...HARD, examples: [{ code }] } });
  await expectEach([["actions sample hard", 0, new RegExp(code)]]);
});
