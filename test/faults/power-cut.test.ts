import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { fileSql } from "../support/file-sql.ts";
import { PROGRAM, type RunningProgram, startProgram, temporaryFolder } from "../support/program.ts";
import { post } from "../support/post.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { Ledger } from "./ledger.ts";
import { inLongForm, lengthOf, report } from "./length.ts";
import { publish, register } from "./fault.ts";
import { cannotRecord, type Image, type Moment, Recording } from "./power-cut/recording.ts";

// The promise under test: what was answered 201 is there after a cut of the power at any moment, whatever the disk made of
// what no fsync had reached; and the server starts again by itself.

const missing = cannotRecord();
/** More than the log takes before it is moved into the file. */
const FILLER = "x".repeat(8_000);
const AT_ONCE = 8;
const TOKEN_EVERY_MS = 20;

const work = temporaryFolder();
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
});

afterAll(async () => {
  await receiver?.close();
  work.remove();
});

/** What was answered 2xx, and when by the notes: at that moment or before it was durable. */
class CutLedger extends Ledger {
  readonly told: { readonly n: number; readonly rowid: number; readonly moment: Moment }[] = [];
  /** Tokens that were made. */
  readonly tokens: { readonly rowid: number; readonly moment: Moment }[] = [];
  readonly #recording: Recording;

  constructor(recording: Recording) {
    super();
    this.#recording = recording;
  }

  override answered(n: number, status: number, rowid: number | undefined): void {
    super.answered(n, status, rowid);
    if (status === 201 && rowid !== undefined) this.told.push({ n, rowid, moment: this.#recording.moment() });
  }

  async makeToken(url: string): Promise<void> {
    try {
      const { status, rowid } = await made(`${url}/v1/tokens`, { name: "made", scopes: ["read"] });
      if (status === 201) this.tokens.push({ rowid, moment: this.#recording.moment() });
    } catch (error) {
      if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
    }
  }
}

/** Publishes until `count` more were acknowledged, with tokens made beside, or until the server is gone. */
async function mixedLoad(server: RunningProgram, ledger: CutLedger, count: number): Promise<void> {
  const end = ledger.acknowledged + count;
  const isOver = (): boolean => ledger.acknowledged >= end || server.child.exitCode !== null;
  const publishing = Array.from({ length: AT_ONCE }, async (_, index) => {
    while (!isOver()) await publish(server.url, ledger, index % 2 === 0 ? FILLER : "");
  });
  const making = (async () => {
    while (!isOver()) {
      await ledger.makeToken(server.url);
      await pause(TOKEN_EVERY_MS);
    }
  })();
  await Promise.all([...publishing, making]);
}

async function made(url: string, body: unknown): Promise<{ status: number; rowid: number }> {
  const response = await post(url, body);
  const { data } = (await response.json()) as { data?: { rowid: number } };
  return { status: response.status, rowid: data?.rowid ?? 0 };
}

/** Starts the program on what a cut left and holds it to the ledger. */
async function lostIn({ folder, moment }: Image, ledger: CutLedger) {
  const data = join(folder, "data");
  const told = ledger.told.filter((one) => one.moment <= moment);
  const tokens = ledger.tokens.filter((one) => one.moment <= moment);
  const server = await startProgram(data, ["--dev"]);
  const next = await made(`${server.url}/v1/events`, { action: "load.sent", payload: { n: 0 } });
  await server.end("SIGKILL");
  expect(next.status).toBe(201);
  const [kept] = fileSql(
    join(data, "evreg.db"),
    `SELECT (SELECT json_group_array(json_array(rowid, CAST(payload AS TEXT) ->> 'n')) FROM event) AS stored,
      (SELECT json_group_array(rowid) FROM token) AS tokens,
      (SELECT integrity_check FROM pragma_integrity_check) AS integrity`,
  );
  expect(kept?.["integrity"]).toBe("ok");
  const stored = new Map(
    (JSON.parse(String(kept?.["stored"])) as [number, number][]).map(([id, n]) => [n, id]),
  );
  const there = new Set(JSON.parse(String(kept?.["tokens"])) as number[]);
  const lost =
    told.filter(({ n, rowid }) => stored.get(n) !== rowid).length +
    tokens.filter(({ rowid }) => !there.has(rowid)).length;
  // No number is given twice.
  if (lost === 0) expect(next.rowid).toBeGreaterThan(Math.max(0, ...told.map(({ rowid }) => rowid)));
  return { told: told.length + tokens.length, lost };
}

/** `broken`: after how many of the cuts the program did not come up, or its file was damaged. */
async function lostAfter(
  recording: Recording,
  ledger: CutLedger,
  options: { readonly cuts: number; readonly seed: number; readonly from?: Moment },
) {
  const sum = { cuts: 0, told: 0, lost: 0, broken: 0, first: "" };
  const look = async (image: Image): Promise<void> => {
    sum.cuts += 1;
    try {
      const { told, lost } = await lostIn(image, ledger);
      sum.told += told;
      sum.lost += lost;
      if (lost > 0) sum.first ||= `${image.name}: ${lost} of ${told} lost`;
    } catch (error) {
      sum.broken += 1;
      sum.first ||= `${image.name}: ${String(error)}`;
    }
  };
  await recording.images(options.cuts, look, options);
  return sum;
}

/** Where a server has its data folder already, with an action and a subscription. */
async function recordingOfData(): Promise<Recording> {
  return Recording.begin(async (folder) => {
    const data = join(folder, "data");
    mkdirSync(data);
    const server = await startProgram(data, ["--dev"]);
    await register(server.url, receiver.url);
    await server.end("SIGTERM");
  });
}

async function recordMixedLoad(
  events: number,
  as?: readonly string[],
): Promise<{ recording: Recording; ledger: CutLedger }> {
  const recording = await recordingOfData();
  const ledger = new CutLedger(recording);
  ledger.watch(receiver);
  const server = await startProgram(join(recording.folder, "data"), ["--dev"], recording.env, [], as);
  await mixedLoad(server, ledger, events);
  await server.end("SIGKILL");
  return { recording, ledger };
}

describe.skipIf(missing !== undefined)(
  `a power cut (long form; skipped where something is missing: ${missing ?? "nothing is"})`,
  () => {
    const lengths = lengthOf("faults/power-cut");
    const seeds = [1, 2, 3, 4];
    const cuts = lengths["cuts under load"] / seeds.length;
    const cutsAfter = lengths["cuts after a failed fsync"];

    inLongForm.for(seeds)(
      `under mixed load, ${cuts} times: what was acknowledged is there (%i)`,
      { timeout: 60_000 + cuts * 10_000 },
      async (seed) => {
        const { recording, ledger } = await recordMixedLoad(4_000);
        const sum = await lostAfter(recording, ledger, { cuts, seed });
        expect(sum).toMatchObject({ cuts, lost: 0, broken: 0, first: "" });
        expect(sum.told).toBeGreaterThan(cuts * 10);
        report("power cut under mixed load", sum);
      },
    );

    inLongForm(
      `after a failed fsync and a restart, ${cutsAfter} times: what was acknowledged is there`,
      { timeout: 60_000 + cutsAfter * 10_000 },
      async () => {
        const recording = await recordingOfData();
        const data = join(recording.folder, "data");
        const ledger = new CutLedger(recording);
        ledger.watch(receiver);
        const failing = await startProgram(data, ["--dev"], recording.env);
        await mixedLoad(failing, ledger, 100);
        recording.failSyncs();
        await mixedLoad(failing, ledger, 10_000);
        expect((await failing.ended).code).toBe(1);
        recording.mend();
        const server = await startProgram(data, ["--dev"], recording.env);
        const from = recording.moment();
        await mixedLoad(server, ledger, 1_000);
        await server.end("SIGKILL");
        const sum = await lostAfter(recording, ledger, { cuts: cutsAfter, seed: 1, from });
        expect(sum).toMatchObject({ lost: 0, broken: 0, first: "" });
        expect(sum.told).toBeGreaterThan(100);
        report("power cut after a failed fsync and a restart", sum);
      },
    );

    // What a test like this would find, were it there: no commit is durable before it is answered.
    inLongForm("synchronous=NORMAL is found to lose what it acknowledged", { timeout: 600_000 }, async () => {
      const { recording, ledger } = await recordMixedLoad(400, [process.execPath, hastyProgram()]);
      const sum = await lostAfter(recording, ledger, { cuts: 12, seed: 1 });
      expect(sum.lost).toBeGreaterThan(0);
      report("power cut with synchronous=NORMAL", sum);
    });
  },
);

/** The program with a setting of the engine in its code that makes it faster. */
function hastyProgram(): string {
  const root = join(PROGRAM, "../..");
  const copy = join(work.path, "hasty");
  mkdirSync(copy);
  for (const name of ["bin", "dist", "package.json", "oclif.manifest.json"]) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const file = join(copy, "dist/program/store-thread.js");
  const before = readFileSync(file, "utf8");
  const after = before.replaceAll("PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL");
  expect(after).not.toBe(before);
  writeFileSync(file, after);
  return join(copy, "bin/run.js");
}
