import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { examineFile } from "../../src/store/libsql/files/closed-file.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "../store/owner.ts";
import { lengthOf, report } from "./length.ts";

// The promise under test: a bit that flips in the data file never makes an event another one, or go, without a word.

const EVENTS = 200;

const open = (folder: string): Promise<Store> =>
  openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger });

/** Every payload by its rowid, `undefined` where it is told to be damaged. */
async function eventsIn(store: Store): Promise<ReadonlyMap<number, string | undefined>> {
  const { events } = await store.events.list({ order: "asc", limit: 500, page: 1 });
  return new Map(
    events.map(({ rowid, payload }) => [rowid, payload && Buffer.from(payload).toString("latin1")]),
  );
}

/** Which of the two says so: a start that is refused, a read that is, or what a look through the file tells. */
function isTold(file: string): boolean {
  try {
    return examineFile(file).damaged_events.length > 0;
  } catch (error) {
    return error instanceof EvregError;
  }
}

const { bits: places } = lengthOf("faults/flipped-bits");

test(
  `a flipped bit at ${places} places of the data file is reported, or changes no event`,
  { timeout: 60_000 + places * 2_000 },
  async () => {
    const parent = mkdtempSync(join(tmpdir(), "evreg-flips-"));
    try {
      const source = join(parent, "source");
      const first = await open(source);
      const { rowid } = await first.catalog.createAction(
        { action: "a.b", application: "x", schemata: {} },
        1,
      );
      const record = (n: number) => ({
        actionId: rowid,
        revision: 1,
        payload: Buffer.from(JSON.stringify({ n, text: "x".repeat(n % 10 === 0 ? 9_000 : 300) })),
      });
      await first.events.record(
        Array.from({ length: EVENTS }, (_, n) => record(n)),
        1,
      );
      const published = await eventsIn(first);
      expect(published.size).toBe(EVENTS);
      await first.close();
      const good = readFileSync(join(source, "evreg.db"));

      const ends = { refused: 0, told: 0, unharmed: 0 };
      for (let place = 0; place < places; place += 1) {
        const folder = join(parent, String(place));
        const file = join(folder, "evreg.db");
        const bytes = Buffer.from(good);
        // A prime's multiples, over the whole file, past the header, which says what it is.
        bytes[100 + ((place * 7_919_993) % (good.length - 100))]! ^= 1 << (place % 8);
        mkdirSync(folder, { mode: 0o700 });
        writeFileSync(file, bytes, { mode: 0o600 });
        const told = isTold(file);
        let found: ReadonlyMap<number, string | undefined> | undefined;
        try {
          const store = await open(folder);
          found = await eventsIn(store).catch(() => undefined);
          await store.close();
        } catch (error) {
          expect(error).toBeInstanceOf(EvregError);
        }
        if (found === undefined) ends.refused += 1;
        else {
          const wrong = [...published].filter(
            ([id, text]) => found.has(id) && found.get(id) !== undefined && found.get(id) !== text,
          );
          expect(wrong, `place ${place}`).toEqual([]);
          const isHarmed = [...published.keys()].some((id) => found.get(id) === undefined);
          if (isHarmed) expect(told, `place ${place}`).toBe(true);
          ends[isHarmed ? "told" : "unharmed"] += 1;
        }
        rmSync(folder, { recursive: true });
      }
      report("flipped bits", { places, ...ends });
    } finally {
      rmSync(parent, { recursive: true, force: true });
    }
  },
);
