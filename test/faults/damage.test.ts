import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "../store/owner.ts";
import { temporaryFolder } from "../support/program.ts";
import { lengthOf, report } from "./length.ts";

// The promise under test: a byte that changed in the files loses no acknowledged event without a word, and its number is
// not given to another one.

const EVENTS = 60;
const PLACES = lengthOf("faults/damage")["places each"];
const folder = temporaryFolder();
const crashed = join(folder.path, "crashed");
const stopped = join(folder.path, "stopped");
const tried = join(folder.path, "tried");
const NAMES = ["evreg.db", "evreg.db-wal"];
const warnings: string[] = [];

const open = (path: string): Promise<Store> =>
  openLibsqlStore({
    folder: path,
    owner: testOwner(),
    logger: { ...silentLogger, warn: (_, text) => void warnings.push(text) },
  });

let event: Parameters<Store["events"]["record"]>[0][number];
const record = async (store: Store): Promise<number> => {
  const [recorded] = await store.events.record([event], 1);
  if (recorded?.kind !== "recorded") throw new Error("an event was not recorded");
  return recorded.rowid;
};

beforeAll(async () => {
  for (const path of [crashed, stopped]) mkdirSync(path, { recursive: true });
  const store = await open(stopped);
  const { rowid } = await store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, 1);
  event = { actionId: rowid, revision: 1, payload: Buffer.from(`{"text":"${"x".repeat(1_000)}"}`) };
  for (let n = 1; n <= EVENTS; n += 1) expect(await record(store)).toBe(n);
  for (const name of NAMES) copyFileSync(join(stopped, name), join(crashed, name));
  await store.close();
});
afterAll(() => folder.remove());

test.each([
  ["log of a killed server", "crashed", "evreg.db-wal"],
  ["file of a killed server", "crashed", "evreg.db"],
  ["file of a stopped server", "stopped", "evreg.db"],
])(
  `with a changed byte of the %s, at ${PLACES} places, no event is lost unnoticed`,
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
      changed[Math.floor(((place + 0.37) / PLACES) * bytes.length)]! ^= 0x41;
      writeFileSync(join(tried, name), changed);
      figures[await outcome()] += 1;
    }
    report(`a byte of ${name}`, { from, ...figures });
    expect(figures.refused + figures.told + figures.whole).toBe(PLACES);
  },
);

/** @throws where events are gone and nobody was told, or one of their numbers was given again */
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
    const next = await record(store);
    const { total } = await store.events.list({ order: "asc", limit: 1, page: 1 });
    expect(next).toBeGreaterThan(EVENTS);
    if (total === EVENTS + 1) return "whole";
    expect(warnings).not.toEqual([]);
    return "told";
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    expect(error.code).toBe("unavailable");
    return "told";
  } finally {
    await store.close();
  }
}
