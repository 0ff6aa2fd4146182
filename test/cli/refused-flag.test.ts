import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { commandLine } from "../support/command-line.ts";
import { startProgram, temporaryFolder, type RunningProgram } from "../support/program.ts";

const folder = temporaryFolder();
const [served, local] = [join(folder.path, "served"), join(folder.path, "local")];
const { run } = commandLine(folder.path, {});
let server: RunningProgram;

beforeAll(async () => {
  for (const data of [served, local]) mkdirSync(data);
  server = await startProgram(served, ["--dev"]);
  const evreg = connect({ url: server.url });
  const schemata = { type: "object", properties: { timeout: { type: "integer" } } };
  await evreg.actions.create({ action: "a", application: "shop", schemata });
  await evreg.close();
});

afterAll(async () => {
  await server.end("SIGTERM");
  folder.remove();
});

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ["events --limit 0", /^Error: --limit: must be a whole number from 1 to 500\n/],
  ["events --from yesterday", /^Error: --from: must be an ISO 8601 .*\n {2}value: yesterday\n/],
  ["events --from 2026-02-30", /^Error: --from: must be an ISO 8601 .*\n {2}value: 2026-02-30\n/],
  ["deliveries --subscription 0", /^Error: --subscription: must be/],
  [
    "subscriptions create --application x --subscription y --action a --handler https://example.com --max-retries 99",
    /^Error: --max-retries: must be/,
  ],
  ["tokens create x --scope read --expires 2020-01-01T00:00:00Z", /^Error: --expires: must be in the future/],
];

test("a refused value of a flag is a usage mistake under the flag's name, with a server and without", async () => {
  for (const [line, told] of REFUSED) {
    const words = line.split(" ");
    const [remote, inFolder] = await Promise.all([
      run([...words, "--url", server.url]),
      run([...words, "--data", local]),
    ]);
    expect.soft(remote, line).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(told) });
    expect.soft(inFolder, line).toEqual(remote);
  }
});

test("with --json it is one document that names the flag", async () => {
  const { code, stderr } = await run(["events", "--limit", "0", "--json", "--url", server.url]);
  expect(code).toBe(2);
  expect(JSON.parse(stderr)).toMatchObject({ code: 400, details: { flag: "limit", value: 0 } });
});

test("a payload's member that is called as a flag is still the payload's", async () => {
  const words = ["publish", "a", '{"timeout": "long"}', "--wait", "--timeout", "5", "--url", server.url];
  const outcome = await run(words);
  expect(outcome).toMatchObject({ code: 1, stdout: "" });
  expect(outcome.stderr).toContain("does not conform to the schema of a: timeout must be");
});

test("an empty listing tells whether there is nothing or nothing that matches", async () => {
  const [none, noMatch, noEvent, noSubscription, noDelivery] = await Promise.all([
    run(["actions", "--url", server.url, "--application", "shop", "--json"]),
    run(["actions", "--url", server.url, "--application", "nope"]),
    run(["events", "--url", server.url, "--action", "nope"]),
    run(["subscriptions", "--url", server.url, "--no-active"]),
    run(["deliveries", "--url", server.url, "--status", "failed"]),
  ]);
  expect(none.stderr).toBe("");
  expect(noMatch).toMatchObject({ code: 0, stdout: "", stderr: "No action matches.\n" });
  expect(noEvent.stderr).toBe("No event matches.\n");
  expect(noSubscription.stderr).toBe("No subscription matches.\n");
  expect(noDelivery.stderr).toBe("No delivery matches.\n");
  const [noneYet, limited] = await Promise.all([
    run(["events", "--url", server.url]),
    run(["events", "--url", server.url, "--limit", "5", "--order", "asc"]),
  ]);
  expect(noneYet.stderr).toMatch(/^No events yet, or none that this token may read\. Publish one: /);
  expect(limited.stderr).toBe(noneYet.stderr);
});
