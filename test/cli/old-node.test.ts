import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Line, startCommand, temporaryFolder } from "../support/program.ts";

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
  writeFileSync(path, BROUGHT, { mode: 0o755 });
}

const start = (line: Line) =>
  startCommand(line, { as: [process.execPath, "--import", OLDER, join(checkout, "bin/run.js")] });

describe.skipIf(process.platform === "win32")("an older Node", () => {
  test("continues with the Node that npm installed, and ends with its exit code", async () => {
    bringNode();
    const words = ["publish", "a.b", '{"text": "two words"}'];
    const stdout = `${join(checkout, "bin/run.js")} ${words.join(" ")}\n`;
    expect(await start(words).ended).toEqual({ code: 5, stdout, stderr: "" });
  });

  test("passes on the signal that stops a server", async () => {
    bringNode();
    const { child, ended } = start("serve");
    child.stdout.once("data", () => child.kill("SIGTERM"));
    const stdout = expect.stringMatching(/serve\nstopped\n$/);
    expect(await ended).toMatchObject({ code: 7, stdout });
  });

  test("reports what is missing where npm installed none", async () => {
    const needs = "^evreg needs Node 22.19 or later; this is v.*\n";
    const refusal = (told: string) => ({ code: 1, stdout: "", stderr: expect.stringMatching(needs + told) });
    expect(await start("--version").ended).toEqual(refusal("Install a later Node"));
    writeFileSync(join(checkout, "package-lock.json"), "{}");
    expect(await start("--version").ended).toEqual(refusal(`Run \`npm ci\` in ${checkout}/: `));
  });
});
