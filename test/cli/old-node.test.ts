import { spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { temporaryFolder } from "../support/program.ts";

// A checkout's program started by an older Node, as from a folder whose `npx` does not know the one that npm brought.

const BIN = fileURLToPath(new URL("../../bin", import.meta.url));
/** Makes this Node say that it is an older one. */
const OLDER = `data:text/javascript,Object.defineProperty(process.versions,"node",{value:"20.1.0"})`;
/** Stands for the Node that was brought: it shows its words, and waits for a signal where one of them is `serve`. */
const BROUGHT = `#!/bin/sh
shift 2
trap 'echo stopped; exit 7' TERM
echo "$@"
case "$*" in *serve*) while :; do sleep 0.05; done ;; esac
exit 5
`;

let place: ReturnType<typeof temporaryFolder>;
let checkout: string;
beforeEach(() => {
  place = temporaryFolder();
  checkout = join(place.path, "a checkout");
  cpSync(BIN, join(checkout, "bin"), { recursive: true });
  writeFileSync(join(checkout, "package.json"), '{"type":"module"}');
});
afterEach(() => place.remove());

function bringNode(): void {
  const path = join(checkout, "node_modules", ".bin", "node");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, BROUGHT);
  chmodSync(path, 0o755);
}

/** @param onOutput is called when it first prints something, and may end it with SIGTERM */
function start(words: readonly string[], onOutput: (end: () => void) => void = () => undefined) {
  const child = spawn(process.execPath, ["--import", OLDER, join(checkout, "bin/run.js"), ...words], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.once("data", () => onOutput(() => child.kill("SIGTERM")));
  child.stdout.on("data", (piece: Buffer) => (stdout += piece.toString()));
  child.stderr.on("data", (piece: Buffer) => (stderr += piece.toString()));
  return new Promise<object>((resolve) =>
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr })),
  );
}

describe.skipIf(process.platform === "win32")("an older Node", () => {
  test("continues with the Node that npm installed, and ends with its exit code", async () => {
    bringNode();
    const words = ["publish", "a.b", '{"text": "two words"}'];
    expect(await start(words)).toMatchObject({
      code: 5,
      stdout: `${join(checkout, "bin/run.js")} ${words.join(" ")}\n`,
      stderr: "",
    });
  });

  test("passes on the signal that stops a server", async () => {
    bringNode();
    const outcome = await start(["serve"], (end) => end());
    expect(outcome).toMatchObject({
      code: 7,
      signal: null,
      stdout: expect.stringMatching(/serve\nstopped\n$/),
    });
  });

  test("reports what is missing where npm installed none", async () => {
    const none = { code: 1, stdout: "" };
    const needs = "evreg needs Node 22.19 or later; this is v";
    expect(await start(["--version"])).toMatchObject({
      ...none,
      stderr: expect.stringMatching(new RegExp(`^${needs}.*\nInstall a later Node`)),
    });
    writeFileSync(join(checkout, "package-lock.json"), "{}");
    expect(await start(["--version"])).toMatchObject({
      ...none,
      stderr: expect.stringMatching(new RegExp(`^${needs}.*\nRun \`npm ci\` in ${checkout}/: `)),
    });
  });
});
