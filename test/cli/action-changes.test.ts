import { expect, test } from "vitest";
import { publish, register } from "../support/records.ts";
import { useServed } from "../support/served.ts";

const SCHEMA = { type: "object", properties: { id: { type: "integer" } } };
const WIDER = { ...SCHEMA, properties: { ...SCHEMA.properties, note: { type: "string" } } };

const served = useServed(async ({ evreg }) => {
  for (const action of ["a.b", "a.checked", "a.old", "a.new", "a.settings", "a.alike", "a.open", "a.same"]) {
    await register(evreg, action, SCHEMA);
  }
  await evreg.actions.update("a.b", { schemata: WIDER });
  await publish(evreg, "a.b", '{"note":"x"}');
});
const { json, expectEach, write } = served;

test("history lists revisions, newest first, a page at a time", async () => {
  const head = "REVISION +APPLIED +MODE";
  const lines = [head, String.raw` +2 +\S+Z +full`, String.raw` +1 +\S+Z +-`];
  await expectEach([
    ["actions history a.b", 0, new RegExp(`^${lines.join("\n")}\n$`)],
    ["actions history a.b --limit 1", 0, /^.+\n +2 .+\n$/],
  ]);
  const { data } = await json("actions history a.b --after 2");
  expect(data).toMatchObject([{ revision: 1, schemata: SCHEMA }]);
});

test("check prints breaks next to the lines of the file, and ends with 5", async () => {
  write("broken.json", `{\n  "type": "object",\n  "required": ["id"],\n  "title": "x"\n}\n`);
  const check = "actions check a.b --schema";
  const broken = `${check} broken.json`;
  const breaks = [
    String.raw`^broken\.json:3: /required: .+\n(.+\n)*`,
    String.raw`Event 1: id is required\n(.+\n)*\n?`,
    String.raw`Not compatible: \d+ breaks; .* The last event was checked: 1 does not conform\.\n$`,
  ];
  const own = "An update of a.b is held to its own mode; leave out --mode to check for that.\n";
  await expectEach([
    [`${check} -`, 0, /^Compatible: /, "", { input: JSON.stringify({ ...WIDER, title: "x" }) }],
    [`${broken} --replay 10`, 5, new RegExp(breaks.join("")), ""],
    [`${broken} --json`, 5, /^\{"data":\{"compatible":false,.*"replay":null\}\}\n$/, ""],
    [`${broken} --mode none`, 0, `Compatible in the mode none. ${own}`],
    [`${broken} --mode none --replay 1`, 5],
    [`${broken} --mode producer`, 5, /\nNot compatible in the mode producer: \d+ breaks?\. An update of /],
    [`${broken} --mode full`, 5, /\nNot compatible in the mode full: \d+ breaks\. /],
  ]);
  expect((await served.evreg.actions.get("a.b")).data.revision).toBe(2);
});

test("a schema may be typed itself, and is then named by its flag", async () => {
  await expectEach([
    [["actions", "create", "a.typed", "--application", "shop", "--schema", '{"required": ["id"]}'], 0],
    [["actions", "check", "a.typed", "--schema", '{"required": ["x"]}'], 5, /^--schema:1: \/required: /],
    [
      ["actions", "check", "a.typed", "--schema", '{"type": "x"}'],
      1,
      "",
      /^Error: --schema: \/type: must be one of /,
    ],
    [
      ["actions", "check", "a.typed", "--schema", '{"type":'],
      2,
      "",
      /^Error: --schema:1: Malformed JSON at /,
    ],
  ]);
  expect((await served.evreg.actions.get("a.typed")).data.schemata).toEqual({ required: ["id"] });
});

test("an invalid schema is named with its line, and events that fail alike share one line", async () => {
  for (let count = 0; count < 7; count += 1) await publish(served.evreg, "a.alike", '{"note":5}');
  await publish(served.evreg, "a.open", '{"note":5}');
  write("torn.yaml", "type: object\nrequired: [id\n");
  write("wider.json", WIDER);
  const alike = /^Events (?:\d+, ){4}\d+ and 2 more: note must be a string\nCompatible/;
  // It may still refuse events with members that the old one did not restrict.
  const open =
    /^Event \d+: note must be a string\nCompatible: an update of a\.open with it would be applied\. Yet events like those above would be refused from then on\. The last event was checked: 1 does not conform\.\n$/;
  await expectEach([
    ["actions check a.alike --schema torn.yaml", 1, "", /^Error: torn\.yaml:[23]: /],
    ["actions check a.alike --schema wider.json --replay 9", 5, alike],
    ["actions check a.open --schema wider.json --replay 9", 5, open, ""],
  ]);
});

test("a breaking update suggests the command for a new version, and values are printed as they are", async () => {
  write("strict.json", { ...SCHEMA, required: ["note"] });
  write("part.json", { type: "str" });
  const anew =
    /\nAs a new version: evreg actions create a\.alike\.v2 --application shop --schema FILE\nOr apply .*--compatibility none\.\n$/;
  await expectEach([
    ["actions update a.alike --schema strict.json", 5, "", anew],
    ["publish a.alike [1]", 1, "", /must be an object\. .*\n {2}value: \[1\]\n/],
    // Though the message has it as part of a word.
    ["actions update a.alike --schema part.json", 1, "", / must be one of .*"string".*\n {2}value: "str"\n/],
  ]);
});

test("an update that changes nothing makes no revision", async () => {
  const same = "The schema is the same as before; there is no new revision.\n";
  const update = "actions update a.same --schema -";
  await expectEach([
    [update, 0, /^Revision +1$/m, same, { input: JSON.stringify(SCHEMA) }],
    [`${update} --compatibility none`, 0, /^Revision +2$/m, "", { input: '{"title": "x"}' }],
  ]);
});

test("the compatibility mode can be set at creation and later, and is shown", async () => {
  const create = "actions create a.mode --application shop --schema - --mode producer";
  const created = await json(create, { input: "{}" });
  expect(created.data).toMatchObject({ compatibility: "producer" });
  const update = "actions update a.settings";
  await expectEach([
    [`${update} --mode consumer`, 0, /^Revision +1\n(?:.*\n)*Mode +consumer$/m],
    [update, 2, ""],
    [`${update} --mode full --compatibility none`, 2, ""],
    [`${update} --mode backward`, 2, ""],
  ]);
});

test("a deprecated action is shown and warned about once, can be retired and restored", async () => {
  const line = '{"action":"a.old","payload":{}}\n';
  const once = /^Warning: a\.old is deprecated since \S+Z; publish to a\.new instead\.\n(?!.*Warning)/s;
  await expectEach([
    ["actions deprecate a.old --successor a.new", 0, /^State +deprecated\nSuccessor +a\.new$/m],
    ["publish a.old {} --json", 0, undefined, once],
    ["publish --batch -", 0, "", once, { input: line.repeat(1_200) }],
    ["actions", 0, /^a\.old +shop +1 +deprecated +full /m],
    ["actions retire a.old", 0, /^State +retired$/m],
    ["publish a.old {} --json", 1, "", /"successor":"a\.new".*"code":410\}\n$/],
    ["actions retire a.old --undo", 0],
    ["actions deprecate a.old --undo --json", 0, /"deprecated":false,"retired":false,"successor":null/],
    ["publish a.old {}", 0, undefined, ""],
    ["actions deprecate a.old --successor no.such", 3, ""],
  ]);
});

test("validate takes a file, stdin or the object, and ends with 1 for a payload that breaks rules", async () => {
  write("payload.json", '{"id": "x"}');
  write("broken.txt", "id: 7");
  const valid = "Valid: it conforms to the schema of a.checked (revision 1).\n";
  const broken =
    'id must be an integer: "x"\nNot valid: it does not conform to the schema of a.checked (revision 1).\n';
  await expectEach([
    ["actions validate a.checked payload.json", 1, broken, ""],
    ["actions validate a.checked -", 0, valid, undefined, { input: '{"id": 7}' }],
    ['actions validate a.checked {"id":"x"}', 1, broken, ""],
    ["actions validate a.checked broken.txt", 1, "", /cannot be read/],
  ]);
});
