import { test } from "vitest";
import { useFolder } from "../support/command-line.ts";

const { write, expectEach } = useFolder({ EVREG_DATA: "data" });

const webhook = (schema: object) => ({
  post: { requestBody: { content: { "application/json": { schema } } } },
});
const document = (webhooks: object) =>
  JSON.stringify({ openapi: "3.1.0", info: { title: "Shop", version: "1" }, webhooks }, null, 1);
const closed = { properties: { a: { xml: {} } }, additionalProperties: false };
const unevaluated = { anyOf: [{ properties: { a: {} } }], unevaluatedProperties: false };

test("import writes what apply reads and reports differences; a second import changes nothing", async () => {
  write("shop.json", document({ "order.created": webhook(closed), "order.paid": webhook({}) }));
  const told = `shop.json:16: order.created: left out: "xml" is not a keyword of draft-07 and checks nothing
`;
  const yaml = `actions:
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
`;
  await expectEach([
    ["import shop.json", 0, yaml, told],
    ["apply --file -", 0, undefined, "Done: 2 created, 0 changed, 0 deleted.\n", { input: yaml }],
    ["apply --file - --dry-run", 0, "Nothing to do; 2 unchanged.\n", "", { input: yaml }],
  ]);
});

test("a schema that would accept more is left out with exit code 7", async () => {
  const input = document({ a: webhook(unevaluated), b: webhook({}) });
  const told = /^Left out: stdin:\d+: a: uneval.*; write additionalProperties, .*\n$/;
  const only =
    /"actions": \[\s+\{\s+"action": "old\.b",\s+"application": "shop",\s+"schemata": \{\}\s+\}\s+\]/;
  await expectEach([["import - --application shop --prefix old. --json", 7, only, told, { input }]]);
});

const MARKDOWN = "# x\n\nA text: of *this*.\n[a](b)\n`c` and: [d](e) f: g\n";

const NO_TITLE = '{"openapi":"3.1.0","webhooks":{}}';

test.each([
  [
    "no fit message",
    document({ a: webhook(unevaluated) }),
    1,
    /No action comes of stdin:\n {2}stdin:\d+: a: /,
  ],
  ["no message", document({}), 1, /stdin declares no webhooks \(OpenAPI 3\.1\) or messages/],
  ["no title that is a name", NO_TITLE, 2, /--application NAME: the document's info\.title must not be/],
  ["broken YAML", "openapi: [", 2, /stdin:1: this is not the YAML evreg reads/],
  ["no YAML", MARKDOWN, 2, /^Error: stdin:\d: this is not the YAML evreg reads: .*, and \d more\nNothing/],
  ["two documents", "a: 1\n---\nb: 1", 2, /stdin:2: .* a second document begins here, and only one/],
  ["another document", "a: 1", 2, /must be OpenAPI 3\.1 or AsyncAPI 3/],
])("%s is refused, and nothing is written", async (_, input, code, message) => {
  await expectEach([["import -", code, "", message, { input }]]);
});

test("names that cannot be are refused, and so is a record a line", async () => {
  const input = document({ a: webhook({}) });
  await expectEach([
    [["import", "-", "--prefix", "a b"], 2, "", /--prefix: it must be letters, digits/, { input }],
    [["import", "-", "--application", " "], 2, "", /--application: it must not be empty\./, { input }],
    ["import - --output jsonl", 2, "", /one document: YAML, or JSON/, { input }],
  ]);
});
