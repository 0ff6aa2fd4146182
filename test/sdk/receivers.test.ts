import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { blocksOf, fileNamedBy, ROOT } from "../docs/documents.ts";
import { freePort } from "../support/free-port.ts";
import { cleanEnv, temporaryFolder } from "../support/program.ts";
import { signedRequest } from "../support/signed-request.ts";
import { until } from "../support/until.ts";

// The receiver of docs/receivers.md, which stands on `evreg/webhook`, sent what the engine sends. Those that need no
// package are in examples/, with tests of their own.

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const OTHER = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;

const folder = temporaryFolder();
let running: ChildProcess | undefined;
mkdirSync(join(folder.path, "node_modules"));
symlinkSync(ROOT, join(folder.path, "node_modules/evreg"));
writeFileSync(join(folder.path, "package.json"), '{"type": "module"}');
afterAll(async () => {
  const gone = new Promise((resolve) => running?.once("close", resolve));
  if (running?.kill("SIGKILL")) await gone;
  folder.remove();
});

/** The receiver of the page, its address, and what it prints. */
async function startReceiver() {
  const block = blocksOf("docs/receivers.md").find(({ text }) => fileNamedBy(text) === "receiver.js");
  const path = join(folder.path, "receiver.js");
  writeFileSync(path, block!.text);
  const port = await freePort();
  const env = cleanEnv({ WEBHOOK_SECRET: SECRET, PORT: String(port) });
  const child = spawn(process.execPath, [path], { cwd: folder.path, env, stdio: ["ignore", "pipe", "pipe"] });
  running = child;
  const told = { out: "", err: "" };
  child.stdout.on("data", (piece: Buffer) => (told.out += piece.toString()));
  child.stderr.on("data", (piece: Buffer) => (told.err += piece.toString()));
  const url = `http://127.0.0.1:${port}/`;
  await until("the receiver listens", async () => {
    if (child.exitCode !== null) throw new Error(`It ended: ${told.err}`);
    return fetch(url, { method: "POST" }).then(
      () => true,
      () => false,
    );
  });
  return { url, told };
}

const EVENT = { payload: '{"name":"Zoë","id":7}', timestampedMs: Date.UTC(2026, 0, 2) };
const BODY = signedRequest({ ...EVENT, secret: SECRET }).body;

function signed({ secret = SECRET, agoMs = 0 } = {}) {
  return signedRequest({ ...EVENT, secret, bearer: null, nowMs: Date.now() - agoMs }).headers;
}

async function statusOf(url: string, headers: Record<string, string>, body: Uint8Array = BODY) {
  return (await fetch(url, { method: "POST", headers, body: Buffer.from(body) })).status;
}

test("the receiver in the documents accepts deliveries, and no forged or old ones", async () => {
  const { url, told } = await startReceiver();
  expect(await statusOf(url, signed())).toBe(204);
  await until("it tells of the event", () => told.out.includes("\n"));
  expect(told.out).toMatch(/^42 user\.created .*Zoë/);
  const before = told.out;
  const refused = [signed({ secret: OTHER }), signed({ agoMs: 310_000 }), signed({ agoMs: -310_000 }), {}];
  for (const headers of refused) expect.soft(await statusOf(url, headers)).toBe(401);
  expect.soft(await statusOf(url, signed(), Buffer.concat([BODY, Buffer.from(" ")]))).toBe(401);
  expect(told.out).toBe(before);
  expect(told.out + told.err).not.toContain(SECRET.slice(6));
});
