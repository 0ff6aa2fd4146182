import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine } from "../support/command-line.ts";
import { useServed } from "./served.ts";

const served = useServed(async ({ evreg, folder }) => {
  const schemata = { type: "object", properties: { timeout: { type: "integer" } } };
  for (const action of ["a", "order.created"]) {
    await evreg.actions.create({ action, application: "shop", schemata });
  }
  // What only looks needs a folder that holds data.
  mkdirSync(join(folder, "local"));
  await run("tokens create first --scope read --data local");
});
const { folder } = served;
const { run } = commandLine(folder, {});
/** A data folder without a server. */
const local = "local";

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ["events --limit 0", /^Error: --limit: must be at least 1\n/],
  ["deliveries --subscription 0", /^Error: --subscription: must be/],
  [
    "subscriptions create --application x --subscription y --action a --handler https://example.com --max-retries 99",
    /^Error: --max-retries: must be/,
  ],
  [
    "tokens create x --scope read,foo",
    /^Error: --scope: must be one of publish, .*, each alone or limited to an application .*\n {2}value: "foo"\n/,
  ],
  ["tokens create x --scope read --expires 2020-01-01T00:00:00Z", /^Error: --expires: must be in the future/],
];

test("a refused argument is a usage error too, with a server and without", async () => {
  const schema = join(folder, "schema.json");
  writeFileSync(schema, "{}");
  const refused = [
    { words: ["tokens", "create", "", "--scope", "read"], told: /^Error: name: must not be empty\nSee: / },
    {
      words: ["actions", "create", "Bad Name!", "--application", "shop", "--schema", schema],
      told: /^Error: action: must be letters, .*\n {2}value: "Bad Name!"\nSee: /,
    },
    {
      words: ["actions", "create", "a".repeat(200), "--application", "shop", "--schema", schema],
      told: /^Error: action: must have at most 128 characters/,
    },
  ];
  for (const { words, told } of refused) {
    const [remote, inFolder] = await Promise.all([
      run([...words, "--url", served.server.url]),
      run([...words, "--data", local]),
    ]);
    expect
      .soft(remote, words.join(" "))
      .toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(told) });
    expect.soft(inFolder, words.join(" ")).toEqual(remote);
  }
});

test("a refused value of a flag is a usage error that names the flag, with a server and without", async () => {
  for (const [line, told] of REFUSED) {
    const words = line.split(" ");
    const [remote, inFolder] = await Promise.all([
      run([...words, "--url", served.server.url]),
      run([...words, "--data", local]),
    ]);
    expect.soft(remote, line).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(told) });
    expect.soft(inFolder, line).toEqual(remote);
  }
});

const MISTAKEN: readonly (readonly [string, RegExp])[] = [
  [
    "events --from yesterday",
    /^Error: --from: must be an ISO 8601 .*or a date alone, .*; not "yesterday"\.\n/,
  ],
  ["events --from 2026-02-30", /^Error: --from: must be an ISO 8601 .*; not "2026-02-30"\.\n/],
  ["events --since 1x", /^Error: --from: .*or how long ago, such as 30m, 1h or 2d; not "1x"\.\n/],
  ["subscriptions update 1 --timeout 2m", /^Error: --timeout: must be .* from 100ms to 1m; not "2m"\./],
  ["subscriptions update 1 --timeout 1.5s", /^Error: --timeout: must be a time such as 500ms/],
  ["subscriptions update 1 --retry-schedule 0s,8d", /^Error: --retry-schedule: .* from 0s to 7d; not "8d"\./],
  [
    `subscriptions update 1 --retry-schedule ${"1s,".repeat(20)}1s`,
    /^Error: --retry-schedule: takes at most 20 times; these are 21\./,
  ],
  ["subscriptions rotate-secret 1 --overlap 31d", /^Error: --overlap: must be .* to 30d; not "31d"\./],
  [
    "subscriptions update 1 --header none --header X-A:b",
    /^Error: --header: takes NAME: VALUE; number 1 of these has no name and colon\./,
  ],
];

test("a flag out of range is reported in its own words and units, before anything is requested", async () => {
  const nobody = ["--url", "http://127.0.0.1:9"];
  const outcomes = await Promise.all(MISTAKEN.map(([line]) => run([...line.split(" "), ...nobody])));
  const help = await run("subscriptions update --help");
  expect(help.stdout).toContain("100ms to 1m");
  for (const [at, [line, told]] of MISTAKEN.entries()) {
    const expected = { code: 2, stdout: "", stderr: expect.stringMatching(told) as string };
    expect.soft(outcomes[at], line).toMatchObject(expected);
  }
});

test("an error in a schema or a filter names its file", async () => {
  writeFileSync(join(folder, "bad.json"), '{"properties": {"a": {"type": "strin"}}}');
  const filter =
    "subscriptions create --application x --subscription y --action a --handler https://example.com";
  for (const [words, place] of [
    ["actions create b --application x --schema bad.json", "/properties/a/type"],
    ["actions check a --schema bad.json", "/properties/a/type"],
    [`${filter} --filter bad.json`, "/properties/a/type"],
  ]) {
    const outcome = await run([...words!.split(" "), "--url", served.server.url]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain(`Error: bad.json: ${place}: `);
  }
});

test("a schema that is too large is refused by its own limit, also where a server is asked", async () => {
  const properties = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`property${at}`, {}]));
  writeFileSync(join(folder, "large.json"), JSON.stringify({ properties }, undefined, 2));
  const create = "actions create b --application x --schema large.json --url".split(" ");
  const outcome = await run([...create, served.server.url]);
  expect(outcome).toMatchObject({ code: 1, stdout: "" });
  expect(outcome.stderr).toMatch(/^Error: large\.json: must have at most 262,144 bytes as JSON, not /);
});

test("a refused header or bearer value is named by its flag, and its value is not repeated", async () => {
  const create =
    "subscriptions create --application x --subscription y --action a --handler https://example.com --url";
  const words = [...create.split(" "), served.server.url];
  const reserved = await run([
    ...words,
    "--header",
    "X-A: b",
    "--header",
    "Authorization: Bearer credential",
  ]);
  expect(reserved).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /^Error: --header: Authorization: is a header that only the service itself sets; .*--bearer-token-file\nSee: /,
    ),
  });
  writeFileSync(join(folder, "bearer"), "a credential");
  const spaced = await run([...words, "--bearer-token-file", "bearer"]);
  expect(spaced).toMatchObject({
    code: 1,
    stderr: "Error: --bearer-token-file: must be 1 to 1024 printable ASCII characters without spaces\n",
  });
  for (const { stderr } of [reserved, spaced]) expect(stderr).not.toContain("credential");
});

test("an invalid header is refused and not repeated", async () => {
  const line = ["subscriptions", "update", "1", "--header", "X-A: b", "--header", "Cookie=credential"];
  const outcome = await run([...line, "--url", served.server.url]);
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toMatch(/--header: takes NAME: VALUE; number 2 of these/);
  expect(outcome.stderr).not.toContain("credential");
});

test("with --json the error is one document that names the flag", async () => {
  const { code, stderr } = await run(["events", "--limit", "0", "--json", "--url", served.server.url]);
  expect(code).toBe(2);
  expect(JSON.parse(stderr)).toMatchObject({ code: 400, details: { flag: "limit", value: 0 } });
});

test("a member of a payload with the name of a flag is not mistaken for the flag", async () => {
  const words = [
    "publish",
    "a",
    '{"timeout": "long"}',
    "--wait",
    "--timeout",
    "5",
    "--url",
    served.server.url,
  ];
  const outcome = await run(words);
  expect(outcome).toMatchObject({ code: 1, stdout: "" });
  expect(outcome.stderr).toContain("does not conform to the schema of a: timeout must be");
});

test("an empty listing says whether there is nothing or nothing that matches", async () => {
  const [none, noMatch, noEvent, noSubscription, noDelivery] = await Promise.all([
    run(["actions", "--url", served.server.url, "--application", "shop", "--json"]),
    run(["actions", "--url", served.server.url, "--application", "nope"]),
    run(["events", "--url", served.server.url, "--action", "nope"]),
    run(["subscriptions", "--url", served.server.url, "--no-active"]),
    run(["deliveries", "--url", served.server.url, "--status", "failed"]),
  ]);
  expect(none.stderr).toBe("");
  expect(noMatch).toMatchObject({ code: 0, stdout: "", stderr: "No action matches.\n" });
  expect(noEvent.stderr).toBe('No event matches. There is no action "nope".\n');
  expect(noSubscription.stderr).toBe("No subscription matches.\n");
  expect(noDelivery.stderr).toBe("No delivery matches.\n");
  const [mistyped, nobody, nowhere, asJson, got] = await Promise.all([
    run(["subscriptions", "--url", served.server.url, "--action", "order.creatd"]),
    run(["deliveries", "--url", served.server.url, "--subscription", "77"]),
    run(["replays", "--data", local, "--subscription", "77"]),
    run(["deliveries", "--url", served.server.url, "--subscription", "77", "--json"]),
    run(["actions", "get", "order.creatd", "--url", served.server.url]),
  ]);
  expect(mistyped.stderr).toBe(
    'No subscription matches. There is no action "order.creatd". Did you mean order.created?\n',
  );
  expect(nobody).toMatchObject({ code: 0, stderr: "No delivery matches. There is no subscription 77.\n" });
  expect(nowhere).toMatchObject({ code: 0, stderr: "No replay matches. There is no subscription 77.\n" });
  expect(asJson).toMatchObject({ code: 0, stderr: "" });
  expect(got.code).toBe(3);
  expect(got.stderr).toContain('Error: There is no action "order.creatd". Did you mean order.created?\n');
  const [noneYet, limited] = await Promise.all([
    run(["events", "--url", served.server.url]),
    run(["events", "--url", served.server.url, "--limit", "5", "--order", "asc"]),
  ]);
  expect(noneYet.stderr).toMatch(/^No events yet\. Publish one: /);
  expect(limited.stderr).toBe(noneYet.stderr);
});
