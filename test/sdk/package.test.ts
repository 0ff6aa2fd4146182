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
    expect(Object.keys(exports)).toEqual(["./client", "./package.json"]);
    for (const name of ["evreg", "evreg/dist/program/main.js", "evreg/dist/sdk/client.js"]) {
      const tried = inConsumer(["--input-type=module", "--eval", `await import(${JSON.stringify(name)})`]);
      await expect(tried, name).rejects.toThrow(/ERR_PACKAGE_PATH_NOT_EXPORTED/);
    }
  });
});

/** Publishes to a server. */
const PROGRAM = `
import { connect, EvregError, RawJson } from "evreg/client";

const evreg = connect({ url: process.env.URL, token: process.env.TOKEN });
const action = "order.created";
await evreg.actions.create({ action, application: "shop", schemata: { type: "object", required: ["id"] } });
const { data: event } = await evreg.events.publish({ action, payload: { id: 1 } });
const payload = RawJson.fromText('{"id": 2.50}');
const batch = await evreg.events.publishBatch([{ action, payload }, { action, payload: { id: 3 } }]);
const missing = await evreg.events.get(99).catch((error) => [error instanceof EvregError, error.code]);
await evreg.close();
console.log(
  JSON.stringify({
    published: [event.payload instanceof RawJson, event.payload.value()],
    batch: batch.data.map((one) => one.payload.text()),
    missing,
  }),
);
`;

describe("in plain JavaScript", () => {
  const data = join(folder.path, "data");
  let server: TestServer;
  beforeAll(async () => {
    mkdirSync(data, { mode: 0o700 });
    server = await serveHere(data);
  });
  afterAll(() => server?.stop());

  test("a program publishes with evreg/client", async () => {
    writeFileSync(join(consumer, "program.js"), PROGRAM);
    const token = readFileSync(join(data, "token"), "utf8").trim();
    const { stdout, stderr } = await inConsumer(["program.js"], { URL: server.url, TOKEN: token });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual({
      published: [true, { id: 1 }],
      batch: ['{"id": 2.50}', '{"id":3}'],
      missing: [true, "not_found"],
    });
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

test("evreg/client is typed for TypeScript", async () => {
  expect(await complaints("client", TYPED, { module: "nodenext", types: ["node"] })).toBe("");
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
