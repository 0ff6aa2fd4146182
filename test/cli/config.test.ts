import { chmodSync, readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { type Ending, useFolder } from "../support/command-line.ts";

const SECRET = "evreg_of_somebody";
const { at, write, run, json, expectEach: expectAll } = useFolder();

/** Runs commands, none of which may show the secret. */
async function expectEach(endings: readonly Ending[]): Promise<void> {
  for (const { stdout, stderr } of await expectAll(endings)) expect(stdout + stderr).not.toContain(SECRET);
}

beforeAll(() => {
  write("good.yaml", `retention: {events: 90m}\nremote: {url: "https://x.example", token: ${SECRET}}\n`);
  // Whatever the umask is.
  chmodSync(at("good.yaml"), 0o644);
  write("bad.yaml", `prot: 80\nauth:\n  mode: none\nremote:\n  token: "${SECRET} twice"\n`);
  write("ca.yaml", "delivery: {ca: gone.pem}\n");
  write("tls.yaml", "tls: {cert: gone.pem, key: gone.key}\n");
  write("evreg.config.yaml", "delivery:\n  maxInFlight: 10\n");
});

test("every key is shown with its value and source, and no secret is", async () => {
  const env = { EVREG_PORT: "8080", EVREG_TOKEN: SECRET, EVREG_DELIVERY_DISABLE_AFTER: "off" };
  const { data, meta } = await json<{ key: string }[]>("config", { env });
  expect(data.map(({ key }) => key)).toEqual(CONFIG_KEYS.map(({ path }) => path));
  const file = at("evreg.config.yaml");
  expect(meta).toEqual({ file });
  expect(Object.fromEntries(data.map((shown) => [shown.key, shown]))).toMatchObject({
    port: { value: 8080, source: "environment", place: "EVREG_PORT" },
    "delivery.maxInFlight": { value: 10, source: "file", place: `${file}:2:16` },
    "delivery.maxInFlightPerSubscription": { value: 512, source: "default", place: null },
    "delivery.disableAfter": { value: "off", source: "environment" },
    "remote.token": { value: "(not shown)", source: "environment" },
    "remote.url": { value: null, source: "default" },
  });
  expect(JSON.stringify(data)).not.toContain(SECRET);
  const state = '"value":"/var/lib/evreg","source":"environment","place":"STATE_DIRECTORY"';
  await expectEach([
    ["config --data elsewhere", 0, /^KEY +VALUE +SOURCE +PLACE$/m, "", { env }],
    ["config --data elsewhere", 0, /^data +\S+\/elsewhere +flag +--data$/m, "", { env }],
    ["config show --output jsonl", 0, new RegExp(state), "", { env: { STATE_DIRECTORY: "/var/lib/evreg" } }],
  ]);
});

test("a configuration with mistakes is not shown, but all its mistakes are", async () => {
  await expectEach([
    ["config", 2, "", /EVREG_PORT: port must be/, { env: { EVREG_PORT: "many" } }],
    ["config show", 2, "", /EVREG_PORT: port must be/, { env: { EVREG_PORT: "many" } }],
    ["config --config none.yaml", 2, "", /^Error: The configuration file \S+none\.yaml does not exist\. /],
  ]);
});

test("each mistake of a file that is named has its line, and what others may read is warned of", async () => {
  const bad = /^Error: .*bad\.yaml:1:1: prot .*port.*bad\.yaml:3:9: auth\.mode .*bad\.yaml:5:10/s;
  await expectEach([
    ["config --config good.yaml", 0, /^retention\.events +90m +file /m, /^Warning: .*chmod 600 .*\n$/],
    ["config --config bad.yaml", 2, "", bad],
  ]);
  const { stderr } = await run("config --config bad.yaml --json");
  const { details } = JSON.parse(stderr) as { details: { problems: unknown } };
  expect(details.problems).toMatchObject([{ name: "prot" }, { name: "auth.mode" }, { name: "remote.token" }]);
});

test("a missing certificate is a mistake, which is named after what is shown", async () => {
  const env = { EVREG_TLS_CERT: "gone.pem", EVREG_TLS_KEY: "gone.key" };
  const gone = /^Error: tls\.cert: \S+gone\.pem cannot be read \(ENOENT\)\./;
  await expectEach([
    ["config --config tls.yaml", 2, /^tls\.cert +\S+gone\.pem /m, gone],
    [
      "config --config ca.yaml",
      2,
      undefined,
      /^Error: delivery\.ca: \S+gone\.pem cannot be read \(ENOENT\)\./,
    ],
    ["config", 2, undefined, gone, { env }],
  ]);
});

test("the example is the one that ships with evreg, and has no mistakes", async () => {
  const example = readFileSync(new URL("../../config.example.yaml", import.meta.url), "utf8");
  write("new.yaml", example);
  await expectEach([
    ["config example", 0, example, ""],
    ["config example --json", 0, `${JSON.stringify({ data: example })}\n`, ""],
    ["config --config new.yaml", 0],
  ]);
});
