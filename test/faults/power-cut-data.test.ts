import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { damageCommit } from "../store/open-file.ts";
import { writeOlderFile } from "../support/older-file.ts";
import {
  launchProgram,
  type Outcome,
  type RunningProgram,
  runProgram,
  startProgram,
} from "../support/program.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { Ledger } from "./ledger.ts";
import { isLong, lengthOf, report } from "./length.ts";
import { Load } from "./fault.ts";
import { ended, eventsIn, makeData } from "./power-cut/data.ts";
import { cannotRecord, Recording, ReportedFiles } from "./power-cut/recording.ts";

// The promise under test: a cut of the power during an upgrade, a restore, a backup or an encryption loses nothing, and
// what it said was done is done. Each takes some seconds before its first cut, so there is no short form.

const missing = cannotRecord() ?? (isLong ? undefined : "the long form");
const cuts = lengthOf("faults/power-cut-data")["cuts each"];
const TIMEOUT_MS = 60_000 + cuts * 12_000;
const EVENTS = 300;

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver?.close());

function restore(folder: string, env: Record<string, string> = {}): Promise<Outcome> {
  return runProgram(["restore", "b.db", "--data", "target", "--force", "--json"], { cwd: folder, env });
}

/** What a start without a data file asks for. */
function putBack(data: string, refusal: string): void {
  expect(refusal).toMatch(/Put the data file back/);
  const kept = readdirSync(data).filter((name) => name.startsWith("evreg.db.before-restore-"));
  for (const name of kept) {
    renameSync(join(data, name), join(data, name.endsWith("-wal") ? "evreg.db-wal" : "evreg.db"));
  }
}

function acceptLoss(folder: string, env: Record<string, string> = {}): Promise<Outcome> {
  return runProgram(["migrate", "--accept-loss", "--data", "data"], { cwd: folder, env });
}

/** Starts a server on what was left, has it take an event, and ends it. */
async function startsOn(data: string, env: Record<string, string> = {}): Promise<RunningProgram> {
  const server = await startProgram(data, ["--dev"], env);
  const health = await fetch(`${server.url}/health`);
  expect(health.status).toBe(200);
  return server;
}

/** What a start on what was left says where it is refused; `undefined` where it is not. */
async function refusalOf(data: string): Promise<string | undefined> {
  const server = launchProgram(data, ["--dev"]);
  const refusal = await server.ready.then(
    () => undefined,
    (error: unknown) => String(error),
  );
  await server.end("SIGKILL");
  return refusal;
}

describe.skipIf(missing !== undefined)(
  `a cut of the power (skipped: needs ${missing ?? "nothing more"})`,
  () => {
    test.for([10, 21] as const)(
      `during an upgrade of form %i, ${cuts} times: all is there, and so is the file before that it told of`,
      { timeout: TIMEOUT_MS },
      async (form) => {
        const recording = await Recording.begin((folder) => {
          mkdirSync(join(folder, "data"));
          writeOlderFile(
            join(folder, "data/evreg.db"),
            form,
            "INSERT INTO action (action, application, revision, created_ms) VALUES ('a', 'x', 1, 1)",
            `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${EVENTS})
          INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload) SELECT n, 1, 1, n, x'7b7d' FROM n`,
          );
        });
        const told = new ReportedFiles(recording);
        await ended(
          runProgram(["migrate", "--data", join(recording.folder, "data")], { env: recording.env }),
        );
        expect(told.noteCopies("data")).toBe(1);
        await recording.images(cuts, async (image) => {
          told.expectIn(image);
          const data = join(image.folder, "data");
          await (await startsOn(data)).end("SIGKILL");
          expect(eventsIn(join(data, "evreg.db"))).toBe(EVENTS);
          const copies = readdirSync(data).filter((name) => name.startsWith("evreg.db.before-v"));
          for (const name of copies) expect(eventsIn(join(data, name))).toBe(EVENTS);
        });
        report(`power cut in an upgrade of form ${form}`, { cuts });
      },
    );

    test.for(["data", "nothing"])(
      `during a restore over %s, ${cuts} times: the old data or the new are there, whole`,
      { timeout: TIMEOUT_MS },
      async (before) => {
        const recording = await Recording.begin(async (folder) => {
          await makeData(join(folder, "data"), receiver.url, EVENTS);
          await ended(runProgram(["backup", "b.db", "--data", "data"], { cwd: folder }));
          if (before === "data") await makeData(join(folder, "target"), receiver.url, 100, "SIGKILL");
        });
        const { stdout } = await ended(restore(recording.folder, recording.env));
        const toldAt = recording.moment();
        const { kept } = (JSON.parse(stdout) as { data: { kept: string | null } }).data;
        let refused = 0;
        await recording.images(cuts, async ({ folder, moment }) => {
          const data = join(folder, "target");
          const isTold = moment >= toldAt;
          if (!existsSync(data)) mkdirSync(data);
          const refusal = await refusalOf(data);
          if (refusal !== undefined) {
            // It says what to do, which is to be done again: nothing has replaced data that were not there.
            expect(isTold, refusal).toBe(false);
            expect(before).toBe("nothing");
            expect(refusal).toMatch(/restore (?:a|the newest) backup/);
            await ended(restore(folder));
            refused += 1;
          }
          const found = eventsIn(join(data, "evreg.db"));
          if (isTold || refusal !== undefined) expect(found).toBe(EVENTS);
          else expect([before === "data" ? 100 : 0, EVENTS]).toContain(found);
          if (isTold && kept !== null)
            expect(eventsIn(join(folder, "target", kept.slice(kept.lastIndexOf("/") + 1)))).toBe(100);
        });
        report(`power cut in a restore over ${before}`, { cuts, refused });
      },
    );

    test(
      `while a damaged log is given up, ${cuts} times: a start is refused as before, or goes on with all that is whole`,
      { timeout: TIMEOUT_MS },
      async () => {
        const recording = await Recording.begin(async (folder) => {
          const data = join(folder, "data");
          await makeData(data, receiver.url, EVENTS, "SIGKILL");
          const log = readFileSync(join(data, "evreg.db-wal"));
          damageCommit(log, 5);
          writeFileSync(join(data, "evreg.db-wal"), log);
        });
        await ended(acceptLoss(recording.folder, recording.env));
        const toldAt = recording.moment();
        const whole = eventsIn(join(recording.folder, "data/evreg.db"));
        const told = new ReportedFiles(recording);
        expect(told.noteCopies("data")).toBe(2);
        let refused = 0;
        await recording.images(cuts, async (image) => {
          told.expectIn(image);
          const data = join(image.folder, "data");
          const refusal = await refusalOf(data);
          if (refusal !== undefined) {
            expect(image.moment, refusal).toBeLessThan(toldAt);
            if (!refusal.includes("--accept-loss")) putBack(data, refusal);
            await ended(acceptLoss(image.folder));
            refused += 1;
          }
          expect(eventsIn(join(data, "evreg.db"))).toBe(whole);
        });
        report("power cut while a damaged log is given up", { cuts, whole, refused });
      },
    );

    test(
      `during a backup of a server at work, ${cuts} times: what was told can be restored`,
      { timeout: TIMEOUT_MS },
      async () => {
        const recording = await Recording.begin((folder) =>
          makeData(join(folder, "data"), receiver.url, EVENTS),
        );
        const { folder } = recording;
        const server = await startProgram(join(folder, "data"), ["--dev"], recording.env);
        const load = new Load(server.url, new Ledger(), 50);
        const told = new ReportedFiles(recording);
        for (const words of [
          ["backup", "b.db"],
          ["backup", "b.db", "--force"],
        ]) {
          told.changes("b.db");
          await ended(runProgram([...words, "--data", "data"], { cwd: folder, env: recording.env }));
          told.note("b.db");
        }
        await Promise.all([load.stop(), server.end("SIGKILL")]);
        await recording.images(cuts, async (image) => {
          told.expectIn(image);
          if (existsSync(join(image.folder, "b.db"))) {
            await ended(runProgram(["restore", "b.db", "--data", "restored"], { cwd: image.folder }));
            expect(eventsIn(join(image.folder, "restored/evreg.db"))).toBeGreaterThanOrEqual(EVENTS);
          }
        });
        report("power cut in a backup", { cuts });
      },
    );

    test(
      `during an encryption with a log left over, ${cuts} times: once it is told, no secret is in the files`,
      { timeout: TIMEOUT_MS },
      async () => {
        let secret = "";
        const recording = await Recording.begin(async (folder) => {
          secret = await makeData(join(folder, "data"), receiver.url, EVENTS, "SIGKILL");
        });
        const data = join(recording.folder, "data");
        expect(readFileSync(join(data, "evreg.db-wal")).includes(secret)).toBe(true);
        const env = { EVREG_ENCRYPTION_KEY: randomBytes(32).toString("base64") };
        const server = await startProgram(data, ["--dev"], { ...recording.env, ...env });
        const toldAt = recording.moment();
        await server.end("SIGKILL");
        const isPlainIn = (folder: string): boolean =>
          readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes(secret));
        let plain = 0;
        await recording.images(cuts, async ({ folder, moment }) => {
          const left = join(folder, "data");
          if (moment >= toldAt && isPlainIn(left)) plain += 1;
          await (await startsOn(left, env)).end("SIGKILL");
          expect(isPlainIn(left)).toBe(false);
          expect(eventsIn(join(left, "evreg.db"))).toBeGreaterThanOrEqual(EVENTS);
        });
        expect(plain).toBe(0);
        report("power cut in an encryption", { cuts, plain });
      },
    );
  },
);
