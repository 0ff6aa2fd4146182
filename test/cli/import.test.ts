import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { type Ending, useFolder } from "../support/command-line.ts";

const { at, read, write, expectEach } = useFolder({ EVREG_DATA: "data" });

const webhook = (schema: object) => ({
  post: { requestBody: { content: { "application/json": { schema } } } },
});
const document = (webhooks: object) =>
  JSON.stringify({ openapi: "3.1.0", info: { title: "Shop", version: "1" }, webhooks }, null, 1);
const closed = { properties: { a: { xml: {} } }, unevaluatedProperties: false };
const branches = { anyOf: [{ properties: { a: {} } }], unevaluatedProperties: false };

test("import writes what apply reads and reports differences; a second import changes nothing", async () => {
  write("shop.json", document({ "order.created": webhook(closed), "order.paid": webhook({}) }));
  const told = `shop.json:16: order.created: left out: xml checks nothing
2 actions of Shop. What they would change: evreg apply --file actions.yaml --dry-run
`;
  const imported: Ending = ["import shop.json -o actions.yaml", 0, "", told];
  await expectEach([imported]);
  expect(read("actions.yaml")).toBe(`actions:
  - action: order.created
    application: Shop
    schemata:
      properties:
        a: {}
      additionalProperties: false
  - action: order.paid
    application: Shop
    schemata: {}
subscriptions: []
`);
  await expectEach([
    ["apply --file actions.yaml", 0, undefined, "Done: 2 created, 0 changed, 0 deleted.\n"],
    imported,
    ["apply --file actions.yaml --dry-run --exit-code", 0],
  ]);
});

test("a schema that would accept more is left out with exit code 7", async () => {
  const input = document({ a: webhook(branches), b: webhook({}) });
  const told = /^Left out: stdin:\d+: a: uneval.* beside anyOf; .*\n$/;
  const only =
    /"actions": \[\s+\{\s+"action": "old\.b",\s+"application": "shop",\s+"schemata": \{\}\s+\}\s+\]/;
  await expectEach([["import - --application shop --prefix old. --json", 7, only, told, { input }]]);
});

const MARKDOWN = "# x\n\nA text: of *this*.\n[a](b)\n`c` and: [d](e) f: g\n";

const NO_TITLE = '{"openapi":"3.1.0","webhooks":{}}';

test.each([
  ["no fit message", document({ a: webhook(branches) }), 1, /No action comes of stdin:\n {2}stdin:\d+: a: /],
  ["no message", document({}), 1, /stdin declares no webhooks \(OpenAPI 3\.1\) or messages/],
  ["no title that is a name", NO_TITLE, 2, /--application NAME: the document's info\.title must not be/],
  ["broken YAML", "openapi: [", 2, /stdin:1: this is not the YAML evreg reads/],
  ["no YAML", MARKDOWN, 2, /^Error: stdin:\d: this is not the YAML evreg reads: .*, and \d more\nNothing/],
  ["two documents", "a: 1\n---\nb: 1", 2, /stdin:2: .* a second document begins here, and only one/],
  ["another document", "a: 1", 2, /must be OpenAPI 3\.1 or AsyncAPI 3/],
])("%s is refused, and nothing is written", async (_, input, code, message) => {
  await expectEach([["import - -o none.yaml", code, "", message, { input }]]);
  expect(existsSync(at("none.yaml"))).toBe(false);
});

test("what cannot be is refused, and the document is never written over", async () => {
  const input = document({ a: webhook({}) });
  write("same.json", input);
  await expectEach([
    ["import same.json -o ./same.json", 2],
    [["import", "-", "--prefix", "a b"], 2, "", /--prefix: it must be letters, digits/, { input }],
    [["import", "-", "--application", " "], 2, "", /--application: it must not be empty\./, { input }],
    ["import - --output jsonl", 2, "", /one document: YAML, or JSON/, { input }],
  ]);
  expect(read("same.json")).toBe(input);
});
