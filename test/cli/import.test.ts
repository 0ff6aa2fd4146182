import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());
const { run } = commandLine(folder.path, { EVREG_DATA: join(folder.path, "data") });

function file(name: string, text: string): string {
  writeFileSync(join(folder.path, name), text);
  return name;
}

const webhook = (schema: object) => ({
  post: { requestBody: { content: { "application/json": { schema } } } },
});
const document = (webhooks: object) =>
  JSON.stringify({ openapi: "3.1.0", info: { title: "Shop", version: "1" }, webhooks }, null, 1);
const declared = (stdout: string) => (JSON.parse(stdout) as { actions: object[] }).actions;
const closed = { allOf: [{ properties: { a: { xml: {} } } }], unevaluatedProperties: false };
const branches = { anyOf: [{ properties: { a: {} } }], unevaluatedProperties: false };

test("import writes what apply reads and reports differences; a second import changes nothing", async () => {
  const path = file("shop.json", document({ "order.created": webhook(closed), "order.paid": webhook({}) }));
  const first = await run(["import", path, "-o", "actions.yaml"]);
  expect(first).toEqual({
    code: 0,
    stdout: "",
    stderr: [
      "shop.json:18: order.created: left out: xml checks nothing",
      "2 actions of Shop. What they would change: evreg apply --file actions.yaml --dry-run",
      "",
    ].join("\n"),
  });
  expect(readFileSync(join(folder.path, "actions.yaml"), "utf8")).toBe(`actions:
  - action: order.created
    application: Shop
    schemata:
      allOf:
        - properties:
            a: {}
      properties:
        a: true
      additionalProperties: false
  - action: order.paid
    application: Shop
    schemata: {}
subscriptions: []
`);
  const applied = await run("apply --file actions.yaml");
  expect(applied).toMatchObject({ code: 0, stderr: "Done: 2 created, 0 changed, 0 deleted.\n" });
  expect(await run(["import", path, "-o", "actions.yaml"])).toEqual(first);
  expect((await run("apply --file actions.yaml --dry-run --exit-code")).code).toBe(0);
});

test("a schema that would accept more is left out with exit code 7", async () => {
  const input = document({ a: webhook(branches), b: webhook({}) });
  const words = ["import", "-", "--application", "shop", "--prefix", "old.", "--json"];
  const strict = await run(words, { input });
  expect(strict).toMatchObject({
    code: 7,
    stderr: expect.stringMatching(/^Left out: stdin:\d+: a: uneval.*, which draft-07 cannot say\n$/),
  });
  expect(declared(strict.stdout)).toEqual([{ action: "old.b", application: "shop", schemata: {} }]);
});

test.each([
  [
    "no message that can be one",
    document({ a: webhook(branches) }),
    1,
    /No action comes of stdin:\n {2}stdin:\d+: a: /,
  ],
  ["no message", document({}), 1, /stdin declares no webhooks \(OpenAPI 3\.1\) or messages/],
  [
    "no title that is a name",
    '{"openapi":"3.1.0","webhooks":{}}',
    2,
    /with --application NAME: the document's info\.title must not be empty\.\n/,
  ],
  ["broken YAML", "openapi: [", 2, /stdin:1: this is not the YAML evreg reads/],
  [
    "no YAML",
    "# x\n\nA text: of *this*.\n[a](b)\n`c` and: [d](e) f: g\n",
    2,
    /^Error: stdin:\d: this is not the YAML evreg reads: .*, and \d more\nNothing/,
  ],
  ["two documents", "a: 1\n---\nb: 1", 2, /stdin must hold one document, not 2\./],
  ["another document", "a: 1", 2, /must be OpenAPI 3\.1 or AsyncAPI 3/],
])("%s is refused, and nothing is written", async (_, input, code, message) => {
  const outcome = await run("import - -o none.yaml", { input });
  expect(outcome).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(message) });
  expect(existsSync(join(folder.path, "none.yaml"))).toBe(false);
});

test("import never overwrites the document", async () => {
  const text = document({ a: webhook({}) });
  const path = file("same.json", text);
  expect(await run(["import", path, "-o", `./${path}`])).toMatchObject({ code: 2 });
  expect(readFileSync(join(folder.path, path), "utf8")).toBe(text);
});

test.each([
  [["--prefix", "a b"], /--prefix: it must be letters, digits/],
  [["--application", " "], /--application: it must not be empty\./],
  [["--output", "jsonl"], /one document: YAML, or JSON/],
])("%j is refused", async (words, message) => {
  const outcome = await run(["import", "-", ...words], { input: document({ a: webhook({}) }) });
  expect(outcome).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(message) });
});
