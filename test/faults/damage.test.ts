import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { examineFile } from "../../src/store/libsql/files/closed-file.ts";
import type { Store } from "../../src/store/store.ts";
import { newAction, openStore } from "../store/opened-store.ts";
import { temporaryFolder } from "../support/program.ts";
import { lengthOf, report } from "./length.ts";

// The promise under test: a bit that flips in the files neither makes an acknowledged event another one nor loses one without
// a word, and its number is not given to another one.

const EVENTS = 60;
const PLACES = lengthOf("faults/damage")["places each"];
const folder = temporaryFolder();
const crashed = join(folder.path, "crashed");
const stopped = join(folder.path, "stopped");
const tried = join(folder.path, "tried");
const NAMES = ["evreg.db", "evreg.db-wal"];
const warnings: string[] = [];
let examined = 0;

const warned = (_: unknown, text: string): void => void warnings.push(text);
const open = (path: string): Promise<Store> =>
  openStore(path, { logger: { ...silentLogger, warn: warned, error: warned } });

/** Some payloads are longer than a page. */
const payloadOf = (n: number): string =>
  JSON.stringify({ n, text: "x".repeat(n % 10 === 0 ? 9_000 : 1_000) });
let actionId = 0;

async function record(store: Store, n: number): Promise<number> {
  const [recorded] = await store.events.record(
    [{ actionId, revision: 1, payload: Buffer.from(payloadOf(n)) }],
    1,
  );
  if (recorded?.kind !== "recorded") throw new Error("an event was not recorded");
  return recorded.rowid;
}

beforeAll(async () => {
  for (const path of [crashed, stopped]) mkdirSync(path, { recursive: true });
  const store = await open(stopped);
  ({ rowid: actionId } = await newAction(store));
  for (let n = 1; n <= EVENTS; n += 1) expect(await record(store, n)).toBe(n);
  for (const name of NAMES) copyFileSync(join(stopped, name), join(crashed, name));
  await store.close();
});
afterAll(() => folder.remove());

test.each([
  ["log of a killed server", "crashed", "evreg.db-wal"],
  ["file of a killed server", "crashed", "evreg.db"],
  ["file of a stopped server", "stopped", "evreg.db"],
])(
  `with a flipped bit of the %s, at ${PLACES} places, no event is another one or lost unnoticed`,
  { timeout: 300_000 },
  async (_, from, name) => {
    const bytes = readFileSync(join(folder.path, from, name));
    const figures = { refused: 0, told: 0, whole: 0 };
    for (let place = 0; place < PLACES; place += 1) {
      rmSync(tried, { recursive: true, force: true });
      mkdirSync(tried);
      for (const other of from === "crashed" ? NAMES : [name]) {
        copyFileSync(join(folder.path, from, other), join(tried, other));
      }
      const changed = Buffer.from(bytes);
      changed[Math.floor(((place + 0.37) / PLACES) * bytes.length)]! ^= 1 << (place % 8);
      writeFileSync(join(tried, name), changed);
      const ending = await outcome();
      if (ending === "told" && from === "stopped")
        expect(await isReported(changed), `place ${place}`).toBe(true);
      figures[ending] += 1;
    }
    report(`a bit of ${name}`, { from, ...figures });
    expect(figures.refused + figures.told + figures.whole).toBe(PLACES);
  },
);

/** Whether a look through such a file finds damage. It is another one than was opened, which the engine may not have let go of. */
async function isReported(bytes: Buffer): Promise<boolean> {
  const path = join(folder.path, `${(examined += 1)}.db`);
  writeFileSync(path, bytes);
  try {
    return (await examineFile(path)).damaged_events.length > 0;
  } catch (error) {
    return error instanceof EvregError;
  } finally {
    rmSync(path);
  }
}

/** @throws where an event is another one, or gone and nobody was told, or one of their numbers was given again */
async function outcome(): Promise<"refused" | "told" | "whole"> {
  warnings.length = 0;
  let store: Store;
  try {
    store = await open(tried);
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    expect(error.message).toMatch(/damaged|not made by evreg|not as evreg makes it|has form/);
    return "refused";
  }
  try {
    const { events } = await store.events.list({ order: "asc", limit: 500, page: 1 });
    const whole = events.filter(({ payload }) => payload !== undefined);
    for (const { rowid, payload } of whole) expect(Buffer.from(payload!).toString()).toBe(payloadOf(rowid));
    expect(await record(store, EVENTS + 1)).toBeGreaterThan(EVENTS);
    if (whole.length === EVENTS) return "whole";
    if (events.length < EVENTS) expect(warnings).not.toEqual([]);
    return "told";
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    expect(["unavailable", "internal"]).toContain(error.code);
    return "told";
  } finally {
    await store.close();
  }
}
