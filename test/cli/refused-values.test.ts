import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { commandLine, type Ending } from "../support/command-line.ts";
import { register } from "../support/records.ts";
import { useServed } from "../support/served.ts";

const served = useServed(async ({ evreg }) => {
  const schemata = { type: "object", properties: { timeout: { type: "integer" } } };
  for (const action of ["a", "order.created"]) await register(evreg, action, schemata);
  // What only looks needs a folder that holds data.
  mkdirSync(at("local"));
  write("schema.json", "{}");
  await run("tokens create first --scope read --data local");
});
const { folder, at, write } = served;
const { run, expectEach } = commandLine(folder, {});
/** A data folder without a server. */
const local = "local";
const SUBSCRIBE =
  "subscriptions create --application x --subscription y --action a --handler https://example.com";

const BAD_NAME = "actions create Bad/Name --application shop --schema schema.json";

test.each<[line: string, told: RegExp]>([
  ["events --limit 0", /^Error: --limit: must be at least 1\n/],
  ["deliveries --subscription 0", /^Error: --subscription: must be/],
  [`${SUBSCRIBE} --max-retries 99`, /^Error: --max-retries: must be/],
  ["tokens create x --scope read,foo", /^Error: --scope: must be one of publish, .*\n {2}value: "foo"\n/],
  ["tokens create x --scope read --expires 2020-01-01T00:00:00Z", /^Error: --expires: must be in the future/],
  // So is a refused argument.
  ["tokens create  --scope read", /^Error: name: must not be empty\nSee: /],
  [BAD_NAME, /^Error: action: must be letters, .*\n {2}value: "Bad\/Name"\nSee: /],
  [BAD_NAME.replace("Bad/Name", "a".repeat(200)), /^Error: action: must have at most 128 characters/],
])("`%s` is a usage error that names what is wrong, with a server and without", async (line, told) => {
  await expectEach([[`${line} --url ${served.server.url}`, 2, "", told]]);
  expect(await run(`${line} --data ${local}`)).toEqual(await run(`${line} --url ${served.server.url}`));
});

test("a flag out of range is reported in its own words and units, before anything is requested", async () => {
  const update = "subscriptions update 1";
  const mistaken: readonly (readonly [string, RegExp])[] = [
    [
      "events --from yesterday",
      /^Error: --from: must be an ISO 8601 .*a date alone, .*; not "yesterday"\.\n/,
    ],
    ["events --from 2026-02-30", /^Error: --from: must be an ISO 8601 .*; not "2026-02-30"\.\n/],
    ["events --since 1x", /^Error: --from: .*or how long ago, such as 30m, 1h or 2d; not "1x"\.\n/],
    [`${update} --timeout 2m`, /^Error: --timeout: must be .* from 100ms to 1m; not "2m"\./],
    [`${update} --timeout 1.5s`, /^Error: --timeout: must be a time such as 500ms/],
    [`${update} --retry-schedule 0s,8d`, /^Error: --retry-schedule: .* from 0s to 7d; not "8d"\./],
    [`${update} --retry-schedule ${"1s,".repeat(20)}1s`, /-schedule: takes at most 20 times; these are 21\./],
    ["subscriptions rotate-secret 1 --overlap 31d", /^Error: --overlap: must be .* to 30d; not "31d"\./],
    [`${update} --header none --header X-A:b`, /--header: takes NAME: VALUE; number 1 of these has no name/],
    // Nor is a header's value repeated.
    [`${update} --header X-A:b --header Cookie=credential`, /^(?!.*credential).*number 2 of these/s],
  ];
  await expectEach([
    ...mistaken.map(([line, told]): Ending => [`${line} --url http://127.0.0.1:9`, 2, "", told]),
    ["subscriptions update --help", 0, /100ms to 1m/],
  ]);
});

test("an error in a schema or a filter names its file", async () => {
  write("bad.json", '{"properties": {"a": {"type": "strin"}}}');
  const url = `--url ${served.server.url}`;
  const told = /^Error: bad\.json: \/properties\/a\/type: /m;
  await expectEach([
    [`actions create b --application x --schema bad.json ${url}`, 1, "", told],
    [`actions check a --schema bad.json ${url}`, 1, "", told],
    [`${SUBSCRIBE} --filter bad.json ${url}`, 1, "", told],
  ]);
});

test("a schema that is too large is refused by its own limit, also where a server is asked", async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 50_000 }, (_, number) => [`property${number}`, {}]),
  );
  write("large.json", JSON.stringify({ properties }, undefined, 2));
  const create = `actions create b --application x --schema large.json --url ${served.server.url}`;
  const told = /^Error: large\.json: must have at most 262,144 bytes as JSON, not /;
  await expectEach([[create, 1, "", told]]);
});

test("a refused header or bearer value is named by its flag, and its value is not repeated", async () => {
  write("bearer", "a credential");
  const create = `${SUBSCRIBE} --url ${served.server.url}`;
  const header = ["--header", "X-A: b", "--header", "Authorization: Bearer credential"];
  const reserved =
    /^(?!.*credential)Error: --header: Authorization: is a header that only the service itself sets; .*--bearer-token-file\nSee: /s;
  const unfit = "Error: --bearer-token-file: must be 1 to 1024 printable ASCII characters without spaces\n";
  await expectEach([
    [[...create.split(" "), ...header], 2, "", reserved],
    [`${create} --bearer-token-file bearer`, 1, "", unfit],
  ]);
});

test("with --json the error is one document that names the flag", async () => {
  const { code, stderr } = await run(`events --limit 0 --json --url ${served.server.url}`);
  expect(code).toBe(2);
  expect(JSON.parse(stderr)).toMatchObject({ code: 400, details: { flag: "limit", value: 0 } });
});

test("a member of a payload with the name of a flag is not mistaken for the flag", async () => {
  const line = `publish a {"timeout":"long"} --wait --timeout 5 --url ${served.server.url}`;
  await expectEach([[line, 1, "", /does not conform to the schema of a: timeout must be/]]);
});

test("an empty listing says whether there is nothing or nothing that matches", async () => {
  const url = `--url ${served.server.url}`;
  const actions = `What there is: evreg actions ${url}\n`;
  await expectEach([
    [`actions ${url} --application shop --json`, 0, undefined, ""],
    [`actions ${url} --application nope`, 0, "", "No action matches.\n"],
    [`events ${url} --action nope`, 0, "", `No event matches. ${actions}`],
    [`subscriptions ${url} --no-active`, 0, "", "No subscription matches.\n"],
    [`deliveries ${url} --status failed`, 0, "", "No delivery matches.\n"],
    [`subscriptions ${url} --action order.creatd`, 0, "", `No subscription matches. ${actions}`],
    [
      `deliveries ${url} --subscription 77`,
      0,
      "",
      /^No delivery matches\. What there is: evreg subscriptions --url /,
    ],
    [
      `replays --data ${local} --subscription 77`,
      0,
      "",
      /^No replay matches\. What there is: evreg subscriptions --data /,
    ],
    [`deliveries ${url} --subscription 77 --json`, 0, undefined, ""],
    [`actions get order.creatd ${url}`, 3, "", /^Error: There is no action .*\. Did you mean order\.created/],
    [`events ${url}`, 0, "", /^No events yet\. Publish one: /],
    [`events ${url} --limit 5 --order asc`, 0, "", /^No events yet\. Publish one: /],
  ]);
});
