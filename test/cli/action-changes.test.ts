import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RawJson } from "../../src/json/raw-json.ts";
import { useServed } from "./served.ts";

const SCHEMA = { type: "object", properties: { id: { type: "integer" } } };
const WIDER = { ...SCHEMA, properties: { ...SCHEMA.properties, note: { type: "string" } } };

const served = useServed(async ({ evreg }) => {
  for (const action of ["a.b", "a.checked", "a.old", "a.new", "a.settings"]) {
    await evreg.actions.create({ action, application: "shop", schemata: SCHEMA });
  }
  await evreg.actions.update("a.b", { schemata: WIDER });
  await evreg.events.publish({ action: "a.b", payload: RawJson.fromValue({ note: "x" }) });
});
const { folder, run, json } = served;

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return name;
}

test("history lists revisions with their changes, and a page includes the change to the one on the next page", async () => {
  const [table, page, document] = await Promise.all([
    run(["actions", "history", "a.b"]),
    run(["actions", "history", "a.b", "--limit", "1"]),
    json(["actions", "history", "a.b", "--after", "2"]),
  ]);
  expect(table.stdout).toMatch(
    /^REVISION +APPLIED +MODE +BREAKS +CHANGES\n +2 +\S+Z +full +0 +\+ \/properties\/note\n +1 +\S+Z +- +- +first\n$/,
  );
  expect(page.stdout.trimEnd().split("\n")).toHaveLength(2);
  expect(page.stdout).toContain("+ /properties/note");
  expect(document.data).toMatchObject([{ revision: 1, schemata: SCHEMA }]);
});

test("diff compares revisions and files", async () => {
  const schema = file("diff.yaml", "type: object\nproperties:\n  id: {type: number}\n");
  const [last, since, toFile, both, alone, mixed, none] = await Promise.all([
    run(["actions", "diff", "a.b"]),
    json(["actions", "diff", "a.b", "1"]),
    run(["actions", "diff", "a.b", schema]),
    json(["actions", "diff", "a.b", "1", "-"], { input: JSON.stringify(SCHEMA) }),
    run(["actions", "diff", "a.new"]),
    run(["actions", "diff", "a.b", schema, "1"]),
    run(["actions", "diff", "a.b", "1", "9"]),
  ]);
  expect(last).toMatchObject({ code: 0, stderr: "" });
  expect(last.stdout).toBe('a.b: revision 1 → revision 2\n+ /properties/note: {"type":"string"}\n');
  expect(since.data).toEqual({
    action: "a.b",
    from: { revision: 1 },
    to: { revision: 2 },
    differences: [{ kind: "added", pointer: "/properties/note", is: { type: "string" } }],
  });
  expect(toFile.stdout.split("\n").slice(1, -1)).toEqual([
    '~ /properties/id/type: "integer" → "number"',
    '- /properties/note: {"type":"string"}',
  ]);
  expect(both.data).toMatchObject({ to: { file: "-" }, differences: [] });
  for (const wrong of [alone, mixed]) expect(wrong).toMatchObject({ code: 2, stdout: "" });
  expect(none).toMatchObject({ code: 3, stdout: "" });
});

test("check prints breaks next to the lines of the file, and ends with 5", async () => {
  const schema = file("broken.json", `{\n  "type": "object",\n  "required": ["id"],\n  "title": "x"\n}\n`);
  const check = ["actions", "check", "a.b", "--schema"];
  const [fine, text, document, none, unread, other, own] = await Promise.all([
    run([...check, "-"], { input: JSON.stringify({ ...WIDER, title: "x" }) }),
    run([...check, schema, "--replay", "10"]),
    run([...check, schema, "--json"]),
    run([...check, schema, "--mode", "none"]),
    run([...check, schema, "--mode", "none", "--replay", "1"]),
    run([...check, schema, "--mode", "producer"]),
    run([...check, schema, "--mode", "full"]),
  ]);
  expect(fine).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(/^Compatible: /) });
  expect(text).toMatchObject({ code: 5, stderr: "" });
  expect(text.stdout).toMatch(/^broken\.json:3: \/required: .+\n/m);
  expect(text.stdout).toMatch(/^Event 1: id is required$/m);
  expect(text.stdout).toMatch(
    /\nNot compatible: \d+ breaks; .* The last event was checked: 1 does not conform\.\n$/,
  );
  expect(document).toMatchObject({ code: 5, stderr: "" });
  expect(JSON.parse(document.stdout)).toMatchObject({ data: { compatible: false, replay: null } });
  expect(none.code).toBe(0);
  expect(none.stdout).toBe(
    "Compatible in the mode none. An update of a.b is held to its own mode; leave out --mode to check for that.\n",
  );
  expect(other.stdout).toMatch(
    /\nNot compatible in the mode producer: \d+ breaks?\. An update of a\.b is held to its own mode; /,
  );
  expect(own.stdout).toMatch(/\nNot compatible in the mode full: \d+ breaks\. /);
  expect(unread.code).toBe(5);
  expect((await served.evreg.actions.get("a.b")).data.revision).toBe(2);
});

test("an invalid schema is named with its line, and events that fail alike share one line", async () => {
  await served.evreg.actions.create({ action: "a.alike", application: "shop", schemata: SCHEMA });
  for (let count = 0; count < 7; count += 1)
    await served.evreg.events.publish({ action: "a.alike", payload: RawJson.fromValue({ note: 5 }) });
  const check = ["actions", "check", "a.alike", "--schema"];
  const torn = await run([...check, file("torn.yaml", "type: object\nrequired: [id\n")]);
  expect(torn).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Error: torn\.yaml:[23]: /) });
  const alike = await run([...check, file("wider.json", JSON.stringify(WIDER)), "--replay", "9"]);
  expect(alike.stdout).toMatch(/^Events (?:\d+, ){4}\d+ and 2 more: note must be a string\nCompatible/);
});

test("a breaking update suggests the command for a new version, and prints lists as lists", async () => {
  const schema = file("strict.json", JSON.stringify({ ...SCHEMA, required: ["note"] }));
  const refused = await run(["actions", "update", "a.alike", "--schema", schema]);
  expect(refused.code).toBe(5);
  expect(refused.stderr).toMatch(
    /\nAs a new version: evreg actions create a\.alike\.v2 --application shop --schema FILE\n$/,
  );
  expect((await run(["publish", "a.alike", "[1]"])).stderr).toMatch(
    /must be an object\. .*\n  value: \[1\]\n/,
  );
});

test("a value is printed even if the message contains it as part of a word", async () => {
  const part = await run([
    "actions",
    "update",
    "a.alike",
    "--schema",
    file("part.json", '{ "type": "str" }'),
  ]);
  expect(part.stderr).toMatch(/ must be one of .*"string".*\n  value: "str"\n/);
});

test("a compatible schema may still refuse events with members that the old one did not restrict", async () => {
  await served.evreg.actions.create({ action: "a.open", application: "shop", schemata: SCHEMA });
  await served.evreg.events.publish({ action: "a.open", payload: RawJson.fromValue({ note: 5 }) });
  const schema = file("wider.json", JSON.stringify(WIDER));
  const checked = await run(["actions", "check", "a.open", "--schema", schema, "--replay", "9"]);
  expect(checked).toMatchObject({ code: 5, stderr: "" });
  expect(checked.stdout).toMatch(
    /^Event \d+: note must be a string\nCompatible: an update of a\.open with it would be applied\. Yet events like those above would be refused from then on\. The last event was checked: 1 does not conform\.\n$/,
  );
});

test("an update that changes nothing makes no revision", async () => {
  await served.evreg.actions.create({ action: "a.same", application: "shop", schemata: SCHEMA });
  const update = ["actions", "update", "a.same", "--schema", "-"];
  const same = await run(update, { input: JSON.stringify(SCHEMA) });
  expect(same).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Revision +1$/m),
    stderr: "The schema is the same as before; there is no new revision.\n",
  });
  const changed = await run([...update, "--compatibility", "none"], {
    input: JSON.stringify({ title: "x" }),
  });
  expect(changed).toMatchObject({ code: 0, stderr: "" });
});

test("an earlier revision can be applied again as the next one", async () => {
  const update = ["actions", "update", "a.b", "--from-revision", "1"];
  expect(await run(update)).toMatchObject({ code: 5, stdout: "" });
  const { data: action } = await json([...update, "--compatibility", "none"]);
  expect(action).toMatchObject({ revision: 3, schemata: SCHEMA });
  expect(await run(["actions", "update", "a.b", "--from-revision", "9"])).toMatchObject({ code: 3 });
});

test("the compatibility mode can be set at creation and later, and is shown", async () => {
  const created = await json(
    "actions create a.mode --application shop --schema - --mode producer --against all".split(" "),
    { input: "{}" },
  );
  expect(created.data).toMatchObject({ compatibility: "producer", compatibility_against: "all" });
  const shown = await run(["actions", "update", "a.settings", "--mode", "consumer", "--against", "all"]);
  expect(shown.stdout).toMatch(/^Mode +consumer, against all$/m);
  expect(shown.stdout).toMatch(/^Revision +1$/m);
  const [nothing, pointless, twice, unknown] = await Promise.all([
    run(["actions", "update", "a.settings"]),
    run(["actions", "update", "a.settings", "--mode", "full", "--compatibility", "none"]),
    run(["actions", "update", "a.settings", "--schema", "x.json", "--from-revision", "1"]),
    run(["actions", "update", "a.settings", "--mode", "backward"]),
  ]);
  for (const wrong of [nothing, pointless, twice, unknown])
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
});

test("a deprecated action is shown and warned about once, can be retired and restored", async () => {
  const deprecated = await run(["actions", "deprecate", "a.old", "--successor", "a.new"]);
  expect(deprecated.stdout).toMatch(/^State +deprecated\nSuccessor +a\.new$/m);
  const line = '{"action":"a.old","payload":{}}\n';
  const [one, bulk, listed] = await Promise.all([
    run(["publish", "a.old", "{}", "--json"]),
    run(["publish", "--batch", "-"], { input: line.repeat(1_200) }),
    run(["actions"]),
  ]);
  const warning = /^Warning: a\.old is deprecated since \S+Z; publish to a\.new instead\.$/m;
  expect(one).toMatchObject({ code: 0, stderr: expect.stringMatching(warning) });
  expect(bulk.code).toBe(0);
  expect(bulk.stderr.match(new RegExp(warning, "gm"))).toHaveLength(1);
  expect(listed.stdout).toMatch(/^a\.old +shop +1 +deprecated +full /m);
  const retired = await run(["actions", "retire", "a.old"]);
  expect(retired.stdout).toMatch(/^State +retired$/m);
  const refused = await run(["publish", "a.old", "{}", "--json"]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(JSON.parse(refused.stderr)).toMatchObject({ code: 410, details: { successor: "a.new" } });
  await json(["actions", "retire", "a.old", "--undo"]);
  const { data: action } = await json(["actions", "deprecate", "a.old", "--undo"]);
  expect(action).toMatchObject({ deprecated: false, retired: false, successor: null });
  expect(await run(["publish", "a.old", "{}"])).toMatchObject({ code: 0, stderr: "" });
  const wrong = await run(["actions", "deprecate", "a.old", "--successor", "no.such"]);
  expect(wrong).toMatchObject({ code: 3, stdout: "" });
});

test("validate takes a file, stdin or the object, and ends with 1 for a payload that breaks rules", async () => {
  const path = file("payload.json", '{"id": "x"}');
  const validate = ["actions", "validate", "a.checked"];
  const [read, piped, typed, broken] = await Promise.all([
    run([...validate, path]),
    run([...validate, "-"], { input: '{"id": 7}' }),
    run([...validate, '{"id": "x"}']),
    run([...validate, file("broken.txt", "id: 7")]),
  ]);
  const notValid = `id must be an integer: "x"\nNot valid: it does not conform to the schema of a.checked (revision 1).\n`;
  for (const one of [read, typed]) expect(one).toEqual({ code: 1, stdout: notValid, stderr: "" });
  expect(piped).toMatchObject({
    code: 0,
    stdout: "Valid: it conforms to the schema of a.checked (revision 1).\n",
  });
  expect(broken).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("cannot be read") });
});
