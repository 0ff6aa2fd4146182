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
/** Too hard to be found: only an example says what it allows. */
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
const { expectEach, runEach } = served;

test("a sample is a payload that can be published, the same each time", async () => {
  const [one, other] = await runEach("actions sample user.created", "actions sample user.created");
  expect(other).toEqual(one);
  await expectEach([["publish user.created -", 0, undefined, undefined, { input: one!.stdout }]]);
});

test("a sample cannot control a terminal, and keeps its value", async () => {
  const sample = "actions sample hostile";
  const [text, line] = await runEach(sample, `${sample} --output jsonl`);
  expect(escapeControlKeepingLines(text!.stdout)).toBe(text!.stdout);
  expect(JSON.parse(text!.stdout)).toEqual({ [NAME]: NAME });
  expect(JSON.parse(line!.stdout)).toEqual({ action: "hostile", revision: 1, payload: { [NAME]: NAME } });
});

test("where no payload is found, the output says so and what helps", async () => {
  const none = /No payload that conforms to the schema of never was found\..*\("examples": \[\{…\}\]\)/s;
  await register(served.evreg, "hard", HARD);
  await expectEach([
    ["actions sample never", 1, "", none],
    ["actions sample no.such", 3],
    ["actions sample hard", 1],
  ]);
  // Doing what it says helps.
  const code = `${"a".repeat(30)}qxqxqxqxqx`;
  await served.evreg.actions.update("hard", { schemata: { ...HARD, examples: [{ code }] } });
  await expectEach([["actions sample hard", 0, new RegExp(code)]]);
});
