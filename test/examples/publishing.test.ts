import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { commandLine } from "../support/command-line.ts";
import { cleanEnv, type Outcome } from "../support/program.ts";
import { openReceiver } from "../support/open-receiver.ts";
import { useServed } from "../support/served.ts";
import { isThere, pathWithEvreg } from "./programs.ts";

// One server that asks for tokens. The examples are used in a copy of their folder, as they write beside themselves.

const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));
/** By a token that may publish, and nothing else. */
let publisher: Record<string, string>;

const served = useServed(
  async ({ server, evreg, data }) => {
    cpSync(EXAMPLES, examples, { recursive: true });
    const { run } = commandLine(join(examples, "registry"), { EVREG_DATA: data });
    expect(await run("apply -f shop.yaml -f releases.yaml")).toMatchObject({ code: 0 });
    const { data: token } = await evreg.tokens.create({ name: "ci", scopes: ["publish"] });
    publisher = { EVREG_URL: server.url, EVREG_TOKEN: token.token };
  },
  { dev: false },
);
const examples = served.at("examples");

test("the registry folder is applied once, and the second time there is nothing to do", async () => {
  // On a folder without a server, as a server would deliver to the handlers in it.
  const apply = "apply -f registry/";
  await commandLine(examples, { EVREG_DATA: served.at("registry") }).expectEach([
    [apply, 0, undefined, /^Done: /m],
    [apply, 0, "Nothing to do; 5 unchanged.\n", ""],
  ]);
});

describe("the pipeline", () => {
  const pipeline = join(examples, "publish-from-ci");
  const COMMIT = "0123456789abcdef0123456789abcdef01234567";

  /** Runs what the step of the workflow runs, with the variables that GitHub and the workflow set. */
  async function step(tag: string, env = publisher): Promise<Outcome> {
    const workflow = parse(readFileSync(join(pipeline, ".github/workflows/publish-release.yml"), "utf8")) as {
      jobs: { publish: { steps: { run?: string; env?: Record<string, string> }[] } };
    };
    const { run: script = "", env: declared = {} } = workflow.jobs.publish.steps.find((one) => one.run)!;
    expect(Object.keys(declared)).toEqual(["EVREG_URL", "EVREG_TOKEN"]);
    const github = { GITHUB_REF_NAME: tag, GITHUB_SHA: COMMIT };
    const options = { cwd: pipeline, env: cleanEnv({ ...github, ...env }) };
    return promisify(execFile)("bash", ["-e", "-c", script], options).then(
      (printed) => ({ code: 0, ...printed }),
      (failed: Outcome) => failed,
    );
  }
  const missing = ["jq", "curl", "bash"].find((name) => !isThere(name, "--version"));

  test("publishes a release once, however often it runs for the same commit", async ({ skip }) => {
    skip(missing !== undefined, `There is no ${missing} here.`);
    expect(await step("v1.4.0")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Published release\.published as event \d+\.\n$/),
      stderr: "",
    });
    expect(await step("v1.4.0")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^It was published before, as event \d+\.\n$/),
    });
    const { data: events } = await served.evreg.events.list({ action: "release.published" });
    expect(events.map(({ payload }) => payload.value())).toEqual([{ version: "1.4.0", commit: COMMIT }]);
  });

  test("fails where the payload breaks the schema, and says how", async ({ skip }) => {
    skip(missing !== undefined, `There is no ${missing} here.`);
    expect(await step("vnext")).toMatchObject({
      code: 1,
      stdout: "",
      stderr:
        "release.published was not published: evreg answered 422.\n" +
        "The payload does not conform to the schema of release.published: version must match the pattern ^[0-9]+\\.[0-9]+\\.[0-9]+$\n" +
        "  version must match the pattern ^[0-9]+\\.[0-9]+\\.[0-9]+$: next\n",
    });
  });

  test("fails without a token, with an invalid one, and behind a proxy that answers something else", async ({
    skip,
  }) => {
    skip(missing !== undefined, `There is no ${missing} here.`);
    expect(await step("v1.5.0", { ...publisher, EVREG_TOKEN: "" })).toMatchObject({
      stderr: expect.stringContaining("EVREG_TOKEN: must hold a token"),
    });
    const wrong = await step("v1.5.0", { ...publisher, EVREG_TOKEN: "evreg_wrong" });
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining("evreg answered 401.\n") });
    const proxy = await openReceiver();
    proxy.answer = () => ({ status: 403, body: "<h1>Forbidden</h1>\n" });
    const refused = await step("v1.5.0", { ...publisher, EVREG_URL: new URL(proxy.url).origin });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("<h1>Forbidden</h1>") });
    const { meta } = await served.evreg.events.list({ action: "release.published" });
    expect(meta.total).toBe(1);
  });
});

/** Runs the script on a file in its folder. */
async function importing(file: string, env: Record<string, string>) {
  const child = spawn("sh", ["import.sh", file], {
    cwd: join(examples, "bulk-import"),
    env: cleanEnv({ ...env, PATH: pathWithEvreg(served.folder) }),
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (piece: Buffer) => (stderr += piece.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, stderr };
}

test("the bulk import publishes the orders next to it", async () => {
  const outcome = await importing("orders.ndjson", publisher);
  const stderr = expect.stringContaining("5 events published, 0 lines refused.");
  expect(outcome).toMatchObject({ code: 0, stderr });
  const { data: events } = await served.evreg.events.list({ action: "order.created", order: "asc" });
  const payloads = events.map(({ payload }) => `${Buffer.from(payload.bytes).toString()}\n`).join("");
  expect(payloads).toBe(readFileSync(join(EXAMPLES, "bulk-import/orders.ndjson"), "utf8"));
});
