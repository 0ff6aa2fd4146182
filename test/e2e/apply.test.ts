import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, expect } from "vitest";
import { inLongForm, isLong, lengthOf, report, rounds } from "../faults/length.ts";
import { commandLine } from "../support/command-line.ts";
import { cleanEnv, PROGRAM, runProgram, temporaryFolder } from "../support/program.ts";
import { serveHere } from "../support/server.ts";

/** The long form has the 500 actions and 2,000 subscriptions that the figures are told of. */
const { applications: APPLICATIONS, "subscriptions each": SUBSCRIPTIONS } = lengthOf("e2e/apply");
const ACTIONS = rounds(6, 25);
const ALL = APPLICATIONS * (ACTIONS + SUBSCRIPTIONS);
const TIMEOUT_MS = 240_000;

let folder: ReturnType<typeof temporaryFolder>;
let data: string;

/** Actions and subscriptions, those of each application in a file. */
beforeEach(() => {
  folder = temporaryFolder();
  data = join(folder.path, "data");
  mkdirSync(data);
  mkdirSync(join(folder.path, "registry"));
  for (let number = 0; number < APPLICATIONS; number += 1) {
    const application = `app${number}`;
    const actions = Array.from({ length: ACTIONS }, (_, index) => ({
      action: `${application}.event${index}`,
      application,
      schemata: {
        type: "object",
        required: ["id"],
        properties: Object.fromEntries(
          Array.from({ length: 12 }, (__, property) => [
            `p${property}`,
            { type: "string", minLength: property },
          ]),
        ),
      },
    }));
    const subscriptions = Array.from({ length: SUBSCRIPTIONS }, (_, index) => ({
      application,
      subscription: `to${index}`,
      action: `app${(number + index) % APPLICATIONS}.event${index % ACTIONS}`,
      handler: `https://hooks.example.com/${index}`,
      headers: { "X-Team": application },
      retry_schedule: [0, 1_000],
    }));
    const text = JSON.stringify({ actions, subscriptions });
    writeFileSync(join(folder.path, "registry", `${application}.json`), text);
  }
});
afterEach(() => folder.remove());

const words = ["apply", "-f", "registry", "--secrets-file", "secrets.ndjson"];

/** Starts applying, and kills it once so many subscriptions were created. */
async function killedAfter(created: number): Promise<void> {
  const child = spawn(process.execPath, [PROGRAM, ...words], {
    cwd: folder.path,
    env: cleanEnv({ EVREG_DATA: data }),
    stdio: "ignore",
  });
  const ended = new Promise((resolve) => child.on("close", resolve));
  // `until` would look too seldom to come in between.
  while (secrets().length < created && child.exitCode === null) await pause(1);
  child.kill("SIGKILL");
  await ended;
  expect(child.signalCode).toBe("SIGKILL");
}

function secrets(): string[] {
  const path = join(folder.path, "secrets.ndjson");
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
}

/** Applies to the end, then again, and answers how the registry is exported. */
async function applied(where: string): Promise<string> {
  const { run } = commandLine(folder.path, { EVREG_DATA: data });
  expect(await run(words)).toMatchObject({ code: 0, stderr: expect.stringMatching(/^Done: /) });
  // A person waits for a program to start as well.
  const alone = { cwd: folder.path, env: { EVREG_DATA: data } };
  const beganMs = performance.now();
  const again = await (isLong ? runProgram(words, alone) : run(words));
  const tookMs = Math.round(performance.now() - beganMs);
  report(`apply with nothing left to do, a ${where}`, { records: ALL, "took ms": tookMs });
  expect(again).toEqual({
    code: 0,
    stdout: `Nothing to do; ${ALL.toLocaleString("en")} unchanged.\n`,
    stderr: "",
  });
  return (await run("export --json")).stdout;
}

for (const where of ["data folder", "server"]) {
  inLongForm(
    `a ${where}: killed half-way and repeated, apply reaches the same end, and then has nothing to do`,
    { timeout: TIMEOUT_MS },
    async () => {
      const server = where === "server" ? await serveHere(data) : undefined;
      await killedAfter((APPLICATIONS * SUBSCRIPTIONS) / 4);
      const before = secrets().length;
      await killedAfter(before + (APPLICATIONS * SUBSCRIPTIONS) / 5);
      const exported = JSON.parse(await applied(where)) as { actions: object[]; subscriptions: object[] };
      expect(exported.actions).toHaveLength(APPLICATIONS * ACTIONS);
      expect(exported.subscriptions).toHaveLength(APPLICATIONS * SUBSCRIPTIONS);
      // A kill loses the secrets of calls that were under way, and of no others.
      const told = new Set(secrets().map((line) => (JSON.parse(line) as { rowid: number }).rowid));
      expect(told.size).toBeGreaterThanOrEqual(exported.subscriptions.length - 2 * 8);
      await server?.stop();
    },
  );
}
