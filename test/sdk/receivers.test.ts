import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { deliveryBody, deliveryHeaders } from "../../src/delivery/signed-request.ts";
import { cleanEnv, temporaryFolder } from "../support/program.ts";
import { until } from "../support/until.ts";

// The receivers of the README as a reader copies them, sent what the engine sends.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const README = readFileSync(join(ROOT, "README.md"), "utf8");
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const OTHER = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;

const folder = temporaryFolder();
const running: ChildProcess[] = [];
mkdirSync(join(folder.path, "node_modules"));
symlinkSync(ROOT, join(folder.path, "node_modules/evreg"));
writeFileSync(join(folder.path, "package.json"), '{"type": "module"}');
afterAll(async () => {
  await Promise.all(
    running.map(async (child) => {
      const gone = new Promise((resolve) => child.once("close", resolve));
      if (child.kill("SIGKILL")) await gone;
    }),
  );
  folder.remove();
});

/** The block of the README that begins by naming this file, written to it. */
function fromReadme(name: string): string {
  const blocks = README.split(/^```.*$/m);
  const block = blocks.find((text) => /^\n(?:\/\/|#) (\S+)\n/.exec(text)?.[1] === name);
  if (block === undefined) throw new Error(`The README has no block that begins with the name ${name}.`);
  const path = join(folder.path, name);
  writeFileSync(path, block);
  return path;
}

function isThere(command: string, ...words: string[]): boolean {
  return spawnSync(command, words, { stdio: "ignore" }).status === 0;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** @returns its address, and what it prints */
async function startReceiver(command: string, words: readonly string[]) {
  const port = await freePort();
  const env = cleanEnv({ WEBHOOK_SECRET: SECRET, PORT: String(port) });
  const child = spawn(command, words, { cwd: folder.path, env, stdio: ["ignore", "pipe", "pipe"] });
  running.push(child);
  const told = { out: "", err: "" };
  child.stdout.on("data", (piece: Buffer) => (told.out += piece.toString()));
  child.stderr.on("data", (piece: Buffer) => (told.err += piece.toString()));
  const url = `http://127.0.0.1:${port}/`;
  await until(`${command} ${words.join(" ")} listens`, async () => {
    if (child.exitCode !== null) throw new Error(`It ended: ${told.err}`);
    return fetch(url, { method: "POST" }).then(
      () => true,
      () => false,
    );
  });
  return { url, port, told };
}

const BODY = deliveryBody({
  eventId: 42,
  action: "user.created",
  payload: Buffer.from('{"name":"Zoë","id":7}'),
  eventTimestampedMs: Date.UTC(2026, 0, 2),
  attempt: 1,
});

function signed(change: { secret?: string; previousSecret?: string; agoMs?: number } = {}) {
  const { secret = SECRET, previousSecret, agoMs = 0 } = change;
  return deliveryHeaders({
    eventId: 42,
    subscriptionId: 7,
    action: "user.created",
    attempt: 1,
    body: BODY,
    secret,
    previousSecret,
    bearer: null,
    nowMs: Date.now() - agoMs,
    version: "1.2.3",
  });
}

async function statusOf(url: string, headers: Record<string, string>, body: Uint8Array = BODY) {
  return (await fetch(url, { method: "POST", headers, body: Buffer.from(body) })).status;
}

async function expectToVerify(command: string, words: readonly string[]): Promise<void> {
  const { url, told } = await startReceiver(command, words);
  expect(await statusOf(url, signed())).toBe(204);
  await until("it tells of the event", () => told.out.includes("\n"));
  expect(told.out).toMatch(/^42 user\.created .*Zoë/);
  expect.soft(await statusOf(url, signed({ secret: OTHER, previousSecret: SECRET }))).toBe(204);
  expect.soft(await statusOf(url, signed({ previousSecret: OTHER }))).toBe(204);
  expect.soft(await statusOf(url, signed({ agoMs: 290_000 }))).toBe(204);
  // What it prints may come behind its answer.
  await until("it tells of all four", () => told.out.split("\n").length === 5);
  const before = told.out;
  const { "webhook-signature": _, "X-Evreg-Signature": __, ...unsigned } = signed();
  expect.soft(await statusOf(url, unsigned)).toBe(401);
  expect.soft(await statusOf(url, {})).toBe(401);
  expect.soft(await statusOf(url, signed({ secret: OTHER }))).toBe(401);
  expect.soft(await statusOf(url, signed(), Buffer.concat([BODY, Buffer.from(" ")]))).toBe(401);
  expect.soft(await statusOf(url, { ...signed(), "webhook-id": "evt_43_7" })).toBe(401);
  expect.soft(await statusOf(url, signed({ agoMs: 310_000 }))).toBe(401);
  expect.soft(await statusOf(url, signed({ agoMs: -310_000 }))).toBe(401);
  expect.soft(await statusOf(url, { ...signed(), "webhook-timestamp": "now" })).toBe(401);
  expect(told.out).toBe(before);
  expect(told.out + told.err).not.toContain(SECRET.slice(6));
}

describe("a receiver of the README takes deliveries, and no forged or old ones:", () => {
  test("Node", () => expectToVerify(process.execPath, [fromReadme("receiver.js")]));

  const python = ["python3", "python"].find((name) =>
    isThere(name, "-c", "import sys; sys.exit(sys.version_info < (3, 9))"),
  );
  test("Python", async ({ skip }) => {
    const path = fromReadme("receiver.py");
    if (python === undefined) skip("There is no Python 3.9 or later here.");
    else await expectToVerify(python, [path]);
  });

  test("Go", async ({ skip }) => {
    const path = fromReadme("receiver.go");
    skip(process.env["FAULTS"] !== "long", "Without a cache the build takes a minute; test:faults runs it.");
    skip(!isThere("go", "version"), "There is no Go here.");
    const program = join(folder.path, process.platform === "win32" ? "receiver.exe" : "receiver");
    const env = { ...process.env, GO111MODULE: "off", GOTOOLCHAIN: "local", GOPROXY: "off", GOFLAGS: "" };
    await promisify(execFile)("go", ["build", "-o", program, path], { cwd: folder.path, env });
    await expectToVerify(program, []);
  }, 300_000);
});

test("what the README signs with openssl and sends with curl is taken", async ({ skip }) => {
  const path = fromReadme("send.sh");
  const missing = ["openssl", "curl"].find(
    (name) => !isThere(name, name === "curl" ? "--version" : "version"),
  );
  skip(missing !== undefined, `There is no ${missing} here.`);
  const { port, told } = await startReceiver(process.execPath, [fromReadme("receiver.js")]);
  const send = (secret: string) =>
    promisify(execFile)("sh", [path], { env: cleanEnv({ WEBHOOK_SECRET: secret, PORT: String(port) }) });
  await send(SECRET);
  await until("it tells of the event", () => told.out.includes("\n"));
  expect(told.out).toMatch(/^1 order\.created/);
  await expect(send(OTHER)).rejects.toMatchObject({ code: 22 });
});
