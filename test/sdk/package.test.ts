import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cleanEnv, temporaryFolder } from "../support/program.ts";
import { serveHere, type TestServer } from "../support/server.ts";

// The package as npm would put it into somebody's project, with nothing beside it but what its client needs.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const folder = temporaryFolder();
const consumer = join(folder.path, "consumer");
const modules = join(consumer, "node_modules");
const evreg = join(modules, "evreg");
const execute = promisify(execFile);

function inConsumer(words: readonly string[], env: Record<string, string> = {}) {
  return execute(process.execPath, words, { cwd: consumer, env: cleanEnv(env) });
}

beforeAll(async () => {
  mkdirSync(evreg, { recursive: true });
  const pack = ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder.path];
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const env = cleanEnv({ npm_config_cache: join(folder.path, "npm") });
  const { stdout } = await execute(npm, pack, { cwd: ROOT, env });
  const archive = join(folder.path, stdout.trim());
  await execute("tar", ["-xzf", archive, "-C", evreg, "--strip-components=1"]);
  symlinkSync(join(ROOT, "node_modules/undici"), join(modules, "undici"));
  writeFileSync(join(consumer, "package.json"), '{"type": "module", "private": true}');
});
afterAll(() => folder.remove());

/** All that a built file loads or could, packages by their names, files of the package by their paths in `dist`. */
function imported(entry: string): string[] {
  const dist = join(evreg, "dist");
  const seen = new Set<string>();
  const visit = (file: string): void => {
    const name = file.slice(dist.length + 1);
    if (seen.has(name)) return;
    seen.add(name);
    // Comments and texts may hold one too; that would only make the list longer.
    for (const match of readFileSync(file, "utf8").matchAll(
      /\b(?:from|import|require)\s*\(?\s*["']([^"']+)["']/g,
    )) {
      const [, specifier = ""] = match;
      if (specifier.startsWith(".")) visit(resolve(dirname(file), specifier));
      else seen.add(specifier);
    }
  };
  visit(join(dist, entry));
  return [...seen].toSorted();
}

test("evreg/client names the Node version before it loads a package that fails on that Node", async () => {
  const project = join(folder.path, "older");
  const undici = join(project, "node_modules/undici");
  cpSync(evreg, join(project, "node_modules/evreg"), { recursive: true });
  mkdirSync(undici);
  const names = "exports.Agent = exports.request = exports.errors = undefined;";
  writeFileSync(join(undici, "index.js"), `throw new TypeError("undici cannot be loaded"); ${names}`);
  const older = `data:text/javascript,Object.defineProperty(process.versions,"node",{value:"20.1.0"})`;
  const words = ["--import", older, "--input-type=module", "--eval", 'import "evreg/client"'];
  const failed = execute(process.execPath, words, { cwd: project, env: cleanEnv({}) });
  const { stderr } = (await failed.catch((error: unknown) => error)) as { readonly stderr: string };
  expect(stderr).toContain("Error: evreg/client needs Node 22.19 or later; this is Node 20.1.0.");
  expect(stderr).not.toMatch(/undici|^ +at /m);
});

describe("what is loaded", () => {
  test("evreg/webhook needs only node:crypto", () => {
    expect(imported("sdk/webhook.js")).toEqual(["json/parse.js", "node:crypto", "sdk/webhook.js"]);
  });

  test("evreg/client contains nothing of the server, the store and the commands", () => {
    const all = imported("sdk/client.js");
    const packages = all.filter((name) => !name.endsWith(".js"));
    expect(packages).toEqual(["node:buffer", "node:crypto", "node:timers/promises", "undici"]);
    const folders = all.filter((name) => name.endsWith(".js")).map((name) => name.split("/")[0]);
    expect(new Set(folders)).toEqual(
      new Set(["api-operations.js", "client", "domain", "json", "model", "sdk"]),
    );
  });

  test("no other module can be imported", async () => {
    const { exports } = JSON.parse(readFileSync(join(evreg, "package.json"), "utf8")) as { exports: object };
    expect(Object.keys(exports)).toEqual(["./client", "./webhook", "./package.json"]);
    for (const name of ["evreg", "evreg/dist/program/main.js", "evreg/dist/sdk/webhook.js"]) {
      const tried = inConsumer(["--input-type=module", "--eval", `await import(${JSON.stringify(name)})`]);
      await expect(tried, name).rejects.toThrow(/ERR_PACKAGE_PATH_NOT_EXPORTED/);
    }
  });
});

/** Publishes to a server, and receives what comes of it. */
const PROGRAM = `
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { connect, EvregError, RawJson } from "evreg/client";
import { verify, WebhookError } from "evreg/webhook";

const evreg = connect({ url: process.env.URL, token: process.env.TOKEN });
const told = { verdicts: [] };
let secret;
const last = Promise.withResolvers();
const server = createServer(async (request, response) => {
  const raw = await buffer(request);
  const { action, payload, delivery_attempt } = verify(request.headers, raw, secret, { accept: "standard" });
  told.verdicts.push({ action, payload, delivery_attempt });
  try {
    verify(request.headers, raw + " ", secret);
  } catch (error) {
    told.forged = [error instanceof WebhookError, error.code];
  }
  response.writeHead(204).end();
  if (told.verdicts.length === 3) last.resolve();
}).listen(0, "127.0.0.1", async () => {
  const name = { action: "order.created", application: "shop" };
  await evreg.actions.create({ ...name, schemata: { type: "object", required: ["id"] } });
  const handler = "http://127.0.0.1:" + server.address().port;
  const { data } = await evreg.subscriptions.create({ ...name, subscription: "sdk", handler, max_retries: 0 });
  secret = data.secret;
  const { data: event } = await evreg.events.publish({ action: name.action, payload: { id: 1 } });
  told.published = [event.payload instanceof RawJson, event.payload.value()];
  const payload = RawJson.fromText('{"id": 2.50}');
  const batch = await evreg.events.publishBatch([{ action: name.action, payload }, { action: name.action, payload: { id: 3 } }]);
  told.batch = batch.data.map((one) => one.payload.text());
  told.missing = await evreg.events.get(99).catch((error) => [error instanceof EvregError, error.code]);
  await last.promise;
  await evreg.close();
  server.closeAllConnections();
  server.close();
  console.log(JSON.stringify(told));
});
`;

describe("in plain JavaScript", () => {
  const data = join(folder.path, "data");
  let server: TestServer;
  beforeAll(async () => {
    mkdirSync(data, { mode: 0o700 });
    const delivery = { allowHttp: true, allowNetworks: ["127.0.0.1/32"] };
    server = await serveHere(data, { changes: { delivery } });
  });
  afterAll(() => server?.stop());

  test("a program publishes with evreg/client and verifies with evreg/webhook", async () => {
    writeFileSync(join(consumer, "program.js"), PROGRAM);
    const token = readFileSync(join(data, "token"), "utf8").trim();
    const { stdout, stderr } = await inConsumer(["program.js"], { URL: server.url, TOKEN: token });
    expect(stderr).toBe("");
    const { verdicts, ...told } = JSON.parse(stdout) as { verdicts: { payload: { id: number } }[] };
    expect(told).toEqual({
      forged: [true, "wrong_signature"],
      published: [true, { id: 1 }],
      batch: ['{"id": 2.50}', '{"id":3}'],
      missing: [true, "not_found"],
    });
    const inOrder = verdicts.toSorted((one, other) => one.payload.id - other.payload.id);
    const ids = [1, 2.5, 3];
    expect(inOrder).toEqual(
      ids.map((id) => ({ action: "order.created", payload: { id }, delivery_attempt: 1 })),
    );
  });
});

const TYPED = `
import { connect, EvregError, RawJson, type Client, type Delivery, type Event, type Evreg } from "evreg/client";

const evreg: Client = connect({ url: "http://127.0.0.1:7480", token: "evreg_x" });
export const port: Evreg = evreg;

export async function use(): Promise<readonly Delivery[]> {
  const { data, replayed } = await evreg.events.publish({ action: "a.b", payload: { id: 1 }, idempotency_key: "k" });
  const event: Event = data;
  const bytes: Uint8Array = event.payload.bytes;
  const isSame: boolean = replayed && event.payload.equals(RawJson.fromValue({ id: bytes.length }));
  if (isSame) throw new EvregError("internal", "no");
  // @ts-expect-error a payload is an object
  await evreg.events.publish({ action: "a.b", payload: "text" });
  // @ts-expect-error no such code
  const code: EvregError["code"] = "no_such";
  return (await evreg.deliveries.list({ status: "failed", limit: code.length })).data;
}
`;
const TYPED_WEBHOOK = `
import { verify, WebhookError, type WebhookBody } from "evreg/webhook";

interface OrderCreated extends WebhookBody {
  readonly payload: { readonly id: number };
}

export function receive(headers: Map<string, string>, body: Uint8Array): number | WebhookError["code"] {
  try {
    const { payload } = verify<OrderCreated>(Object.fromEntries(headers), body, ["whsec_a", "whsec_b"], {
      accept: "standard",
    });
    return payload.id;
  } catch (error) {
    if (error instanceof WebhookError) return error.code;
    throw error;
  }
}
// @ts-expect-error the body as it came, not a parsed one
verify({}, { event_id: "1" }, "whsec_a");
`;

/** What the compiler says, strict and with the declarations of all packages checked as well. */
async function complaints(name: string, source: string, options: object): Promise<string> {
  writeFileSync(join(consumer, `${name}.ts`), source);
  const checked = { strict: true, skipLibCheck: false, exactOptionalPropertyTypes: true, noEmit: true };
  const typeRoots = [join(ROOT, "node_modules/@types")];
  const compilerOptions = { lib: ["es2022"], target: "es2022", typeRoots, ...checked, ...options };
  const project = join(consumer, `${name}.json`);
  writeFileSync(project, JSON.stringify({ compilerOptions, files: [`${name}.ts`] }));
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  return inConsumer([compiler, "-p", project]).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
}

describe("in TypeScript", () => {
  test("evreg/client is typed", async () => {
    expect(await complaints("client", TYPED, { module: "nodenext", types: ["node"] })).toBe("");
  });

  // A receiver may be no Node project: bundled, and with no types but the language's own.
  test("evreg/webhook is typed", async () => {
    const how = { module: "preserve", moduleResolution: "bundler", types: [] };
    expect(await complaints("webhook", TYPED_WEBHOOK, how)).toBe("");
  });
});

test("the package contains what runs, and no tests", () => {
  expect(readdirSync(evreg).toSorted()).toEqual(
    [
      ..."CHANGELOG.md CONTRIBUTING.md LICENSE README.md bin config.example.yaml dist docs examples".split(
        " ",
      ),
      ..."oclif.manifest.json package.json".split(" "),
    ].toSorted(),
  );
});
