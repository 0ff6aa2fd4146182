import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadDeclarations, problemsError } from "../../../src/cli/registry/declarations.ts";
import { ACTION, memberNames, SUBSCRIPTION } from "../../../src/cli/registry/members.ts";
import { temporaryFolder } from "../../support/program.ts";
import { declaredBy, lines, writeFiles } from "./setup.ts";

const GOOD = "{ action: order.created, application: shop, schemata: { type: object } }";
const SUBSCRIPTION_OF =
  "application: billing, subscription: invoices, action: order.created, handler: https://a.example";

const action = (schemata: string): string =>
  `actions: [{ action: a, application: b, schemata: ${schemata} }]`;
/** On its first line; what follows stands on the next ones. */
const subscription = (more: string): string => `subscriptions: [{ ${SUBSCRIPTION_OF}, ${more} }]`;
const withHandler = (handler: string): string =>
  `subscriptions:\n  - application: a\n    subscription: b\n    action: c\n    handler: ${handler}`;

test("everything a request may contain can be declared, but secrets and read-only members", () => {
  for (const kind of [ACTION, SUBSCRIPTION]) {
    const inRequests = Object.keys(kind.body["properties"] as object).filter(
      (name) => name !== "bearer_token",
    );
    const inFiles = memberNames(kind).filter((name) => !kind.references.includes(name));
    expect(inFiles.toSorted()).toEqual(inRequests.toSorted());
  }
});

test("a file may have anchors with defaults, and names that need trimming", async () => {
  const { actions, subscriptions, problems } = await declaredBy(`
actions: [${GOOD}]
x-usual: &usual { max_retries: 2, headers: { X-Team: billing } }
subscriptions:
  - <<: *usual
    application: " billing "
    subscription: invoices
    action: order.created
    handler: https://a.example
`);
  expect(problems).toEqual([]);
  expect(actions[0]?.values).toEqual({
    action: "order.created",
    application: "shop",
    schemata: { type: "object" },
  });
  expect(subscriptions[0]?.values).toEqual({
    application: "billing",
    subscription: "invoices",
    action: "order.created",
    handler: "https://a.example",
    max_retries: 2,
    headers: { "X-Team": "billing" },
  });
});

describe("a mistake is reported with its line", () => {
  test.each([
    [
      "actions:\n  - action: a\n    aplication: b\n    schemata: {}",
      /:3: aplication .*did you mean application\?$/,
    ],
    ["action: []", /:1: action is unknown here; did you mean actions\?$/],
    ["actions: 5", /:1: actions must be a list$/],
    ["- 1", /:1: must be a mapping with the lists actions and subscriptions$/],
    ["actions:\n  - just text", /:2: must be a mapping, which declares one action$/],
    ["actions:\n  - action: a\n    schemata: {}", /:2: application: /],
    ["actions:\n  - action: a..b\n    application: b\n    schemata: {}", /:2: action: .*single dots/],
    ["actions:\n  - action: a\n    application: b\n    schemata: 7", /:4: schemata: /],
    [
      `actions:\n  - ${GOOD}\n  - ${GOOD}`,
      /:3: the action order\.created is declared already, at registry\.yaml:2$/,
    ],
    [subscription("\n max_retries: 21"), /:2: max_retries: /],
    [subscription("\n headers: { Host: a }"), /:2: headers.*Host.*only the service itself sets/],
    [subscription("on_exhausted: skip"), /:1: on_exhausted: is for .*ordered only$/],
    [subscription("\n bearer_token: hidden-value"), /:2: bearer_token must not stand .*bearer_token_file$/],
    [subscription("bearer: none,\n bearer_token_file: x"), /:1: bearer: must be own/],
    [withHandler("https://u:hidden-value@a.example"), /:5: handler: must not hold a user name or password/],
    [withHandler("ftp://a.example"), /:5: handler: must be an https: URL/],
    ["actions: [\n", /:2: this is not the YAML evreg reads: /],
    ["a: 1\na: 2", /:2: .*: the key "a" is here twice$/],
    ["x-a: !!foo 1", /:1: .*tag/],
    ["x-a:\n  b: .nan", /:2: must be a value that JSON has$/],
    ["x-a: &a\n  b: *a", /:2: .*: \*a stands within &a, which it would repeat without end$/],
    ["x-a: &a\n  <<: *a", /:2: .*: \*a stands within &a/],
    ["x-a:\n  <<: 3", /:2: .*: << takes a mapping, or a list of them$/],
    ["x-a: &a [b]\nx-c:\n  <<: [{ d: 1 }, *a]", /:3: .*: << takes a mapping, or a list/],
    ["x-a:\n  <<: *b", /:2: .*: no anchor &b stands before this \*b$/],
    ["x-a: *b", /:1: .*: no anchor &b stands before this \*b$/],
    ["x-a:\n  ? [b]\n  : c", /:2: .*: a key must be a text, and this is a list$/],
    ["x-a: &a [b]\nx-c:\n  *a : d", /:3: .* and this is a list$/],
    ["x-a: !!binary aGk=", /:1: must be a value that JSON has$/],
    ["actions: []\n---\nactions: []", /:2: .*: a second document begins here, and only one/],
    ["x-a: { <<: { b: 1 },\n  <<: { c: 1 } }", /:2: .*: the key "<<" is here twice$/],
    ["x-a: { 200: 1,\n  '200': 2 }", /:2: .*: the key "200" is here twice$/],
    ...["~", "true", "1.50", "0x10", "12345678901234567890"].map((key): [string, RegExp] => [
      `x-a:\n  ${key}: 1`,
      new RegExp(`:2: .*: the key ${key} is no text as it stands; write it in quotes$`),
    ]),
    [`x-a: ${"[".repeat(20_000)}${"]".repeat(20_000)}`, /:1: .*: it is nested too deeply$/],
    [`x-a: ${"[".repeat(200)}${"]".repeat(200)}`, /:1: is nested deeper than 100 levels$/],
  ])("%#", async (text, expected) => {
    const told = lines(await declaredBy(text));
    expect(told).toEqual([expect.stringMatching(new RegExp(`^registry\\.yaml${expected.source}`))]);
    expect(told.join()).not.toContain("hidden-value");
  });

  test("in JSON too, by the rules of a request", async () => {
    const misspelt = '{\n "actions": [\n  { "action": "a",\n   "applicatoin": "b", "schemata": {} }\n ]\n}';
    expect(lines(await declaredBy(misspelt, "shop.json"))).toEqual([
      expect.stringMatching(/^shop\.json:4: applicatoin .*did you mean application\?$/),
    ]);
    expect(lines(await declaredBy('{"actions": [],\n"actions": []}', "shop.json"))).toEqual([
      expect.stringMatching(/^shop\.json:2: .*"actions"/),
    ]);
  });

  test("and so is that of each other record, up to its first one", async () => {
    const told = await declaredBy(`
actions:
  - { action: b, nope: 1, application: [] }
  - { action: 1, application: b, schemata: {} }
subscriptions:
  - application: billing
    subscription: invoices
    action: a..b
    headers: { Host: a }
  - { application: billing }`);
    expect(lines(told).join("\n")).toMatch(
      /^\S+:3: nope is unknown here.*\n\S+:4: action: must be a string\n\S+:8: action: .*single dots.*\n\S+:10: subscription: is required$/,
    );
  });
});

test("the first of very many mistakes are reported, and how many there are", async () => {
  const { problems } = await declaredBy(`actions:\n${"  - 1\n".repeat(1_234)}`);
  const { message } = problemsError(problems);
  expect(message).toMatch(/^The files have 1,234 mistakes:\n {2}registry\.yaml:2: /);
  expect(message).toContain("registry.yaml:51: ");
  expect(message).not.toContain("registry.yaml:52: ");
  expect(message).toMatch(/\n {2}and 1,184 more\nNothing was changed\.$/);
});

test("times have the same forms as on the command line, and others are reported", async () => {
  const { subscriptions } = await declaredBy(subscription("timeout_ms: 30s, retry_schedule: [0, 1s, 2h]"));
  expect(subscriptions[0]?.values).toMatchObject({
    timeout_ms: 30_000,
    retry_schedule: [0, 1_000, 7_200_000],
  });
  const pulled = "application: a, subscription: b, action: order.created, mode: pull, expires_after_ms: 24h";
  const expiring = await declaredBy(`subscriptions: [{ ${pulled} }]`);
  expect(expiring.problems).toEqual([]);
  expect(expiring.subscriptions[0]?.values).toMatchObject({ expires_after_ms: 86_400_000 });
  const wrong = await declaredBy(subscription("timeout_ms: soon, retry_schedule: [1s, 1x]"));
  expect(lines(wrong)).toEqual([expect.stringMatching(/timeout_ms: must be a time such as .* not "soon"$/)]);
});

test("a key that comes twice is reported with its line, also among very many", async () => {
  const keys = Array.from({ length: 20_000 }, (_, number) => `  a${number}: 1\n`).join("");
  const twice = await declaredBy(`x-keys:\n${keys}  a1: 2\n`);
  expect(lines(twice)).toEqual([expect.stringMatching(/:20002: .*: the key "\w+" is here twice$/)]);
});

test("anchors that contain each other endlessly are refused, and anchors that each record uses are not", async () => {
  const levels = Array.from({ length: 30 }, (_, level) => level);
  const bomb = levels.map((level) => `x-${level + 1}: &l${level + 1} [*l${level}, *l${level}]`);
  expect(lines(await declaredBy(`x-0: &l0 [1]\n${bomb.join("\n")}`))).toEqual([
    expect.stringMatching(/: its anchors are used more than 10,000 times, /),
  ]);
  const records = Array.from(
    { length: 2_000 },
    (_, n) => `  - { <<: *usual, application: a, subscription: s${n}, action: b, headers: *headers }`,
  );
  const many = await declaredBy(
    `x-h: &headers { X-A: b }\nx-u: &usual { handler: https://a.example }\nsubscriptions:\n${records.join("\n")}`,
  );
  expect(many.problems).toEqual([]);
  expect(many.subscriptions).toHaveLength(2_000);
});

describe("files", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  beforeEach(() => {
    folder = temporaryFolder();
  });
  afterEach(() => folder.remove());

  const load = (path: string) => loadDeclarations([join(folder.path, path)]);

  test("a folder is read in order; hidden files, schemas and other types are skipped", async () => {
    writeFiles(folder.path, {
      "r/b.yml": "actions: [{ action: b, application: x, schemata: {} }]",
      "r/a/z.json": '{"actions": [{"action": "z", "application": "x", "schemata": {"type": "object"}}]}',
      "r/c.yaml": action("schemas/plain.schema.json"),
      "r/schemas/plain.schema.json": '{"type": "object", "title": "plain"}',
      "r/schemas/other.schema.yaml": "type: object",
      "r/.hidden.yaml": "nonsense",
      "r/.git/x.yaml": "nonsense",
      "r/node_modules/x.json": "nonsense",
      "r/notes.txt": "nonsense",
    });
    const { actions } = await load("r");
    expect(actions.map(({ values }) => values["action"])).toEqual(["z", "b", "a"]);
    expect(actions[2]?.values["schemata"]).toEqual({ type: "object", title: "plain" });
    await expect(load("r/.git/none")).rejects.toMatchObject({ code: "usage" });
    writeFiles(folder.path, { "empty/readme.md": "" });
    await expect(load("empty")).rejects.toThrow(/There is no \.yaml, \.yml or \.json file in/);
  });

  test("a link that leads nowhere is named, and one to a folder is left out", async () => {
    writeFiles(folder.path, { "r/a.yaml": `actions: [${GOOD}]` });
    symlinkSync("gone.yaml", join(folder.path, "link.yaml"));
    symlinkSync(".", join(folder.path, "r/folder.yaml"));
    await expect(load("r")).resolves.toMatchObject({ problems: [] });
    await expect(load("link.yaml")).rejects.toThrow(/link\.yaml is a link to gone\.yaml, which is not there/);
  });

  test("a schema's file must be inside the named folder, however its path is written", async () => {
    writeFiles(folder.path, {
      "outside.json": "{}",
      "r/sub/in.yaml": action("../ok.schema.json"),
      "r/ok.schema.json": "{}",
    });
    await expect(load("r")).resolves.toMatchObject({ actions: [{ values: { schemata: {} } }] });
    symlinkSync(join(folder.path, "outside.json"), join(folder.path, "r/link.json"));
    const outside = join(folder.path, "outside.json");
    for (const path of ["../outside.json", outside, "./link.json", "/etc/hostname"]) {
      writeFiles(folder.path, { "r/sub/in.yaml": "{}", "r/a.yaml": action(path) });
      const told = /a\.yaml:1: schemata: .*lies outside .*Nothing was changed/s;
      await expect(load("r/a.yaml"), path).rejects.toThrow(told);
    }
    // Of a file that is named itself, only what lies beside it.
    writeFiles(folder.path, { "r/sub/in.yaml": action("../ok.schema.json") });
    await expect(load("r/sub/in.yaml")).rejects.toThrow(/lies outside/);
    writeFiles(folder.path, { "r/a.yaml": action("gone.json") });
    await expect(load("r/a.yaml")).rejects.toThrow(/a\.yaml:1: schemata: There is no file gone\.json/);
  });

  test("a mistake in a schema's file is reported with that file's line", async () => {
    writeFiles(folder.path, { "a.yaml": action("s.json"), "s.json": '{\n  "type": "object",\n}' });
    await expect(load("a.yaml")).rejects.toThrow(/^s\.json:3: Malformed JSON/);
    writeFiles(folder.path, { "s.json": "[1]" });
    await expect(load("a.yaml")).rejects.toThrow(/schemata: must be/);
  });

  test("a bearer value is read from its file", async () => {
    const text = `subscriptions: [{ ${SUBSCRIPTION_OF}, bearer_token_file: tok }]`;
    writeFiles(folder.path, { "r/a.yaml": text, "r/tok": "value-1\n", "secrets/tok": "value-2\n" });
    const beside = await load("r");
    expect(beside.subscriptions).toMatchObject([{ bearerToken: "value-1", values: { bearer: "own" } }]);
    expect(beside.subscriptions[0]?.values).not.toHaveProperty("bearer_token_file");
    writeFiles(folder.path, { "r/tok": "two words" });
    await expect(load("r")).rejects.toThrow(/bearer_token_file: must be 1 to/);
    writeFiles(folder.path, { "r/a.yaml": text.replace(": tok", ": ../secrets/tok") });
    await expect(load("r")).rejects.toThrow(/bearer_token_file: .*lies outside/);
  });
});
