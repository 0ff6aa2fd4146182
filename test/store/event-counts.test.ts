import * as fc from "fast-check";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventSelection } from "../../src/store/events.ts";
import { BLOCK_ROWIDS, countStoredEvents, deleteEvents } from "../../src/store/sql/events/counts.ts";
import { listEvents, nextEvents } from "../../src/store/sql/events/list.ts";
import { recordEvents } from "../../src/store/sql/events/record.ts";
import { createAction } from "../../src/store/sql/catalog/actions.ts";
import type { WriteConnection } from "../../src/store/libsql/connection.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";
import { eventBatch } from "./batches.ts";

/** Of each action, its application. */
const APPLICATIONS = ["x", "x", "y", "y", "y"];

interface Recorded {
  readonly rowid: number;
  readonly action: number;
  readonly atMs: number;
}

type Query = Pick<EventSelection, "action" | "applications" | "fromMs" | "toMs">;

const scratch = useScratch();

describe("counts of events by blocks", () => {
  let connection: WriteConnection;
  /** What must be in the file. */
  let events: Recorded[] = [];
  let nowMs = 0;
  let files = 0;

  afterEach(() => connection.close());

  async function open(): Promise<void> {
    connection = await openFile(join(scratch.path, `${(files += 1)}.db`));
    connection.read.run("PRAGMA synchronous = OFF");
    await connection.write(async (sql) => {
      for (const [index, application] of APPLICATIONS.entries()) {
        await createAction(sql, { action: `a${index}`, application, schemata: {} }, 1);
      }
    });
    events = [];
    nowMs = 1_000_000;
  }
  beforeEach(open);

  async function record(actions: readonly number[], aheadMs: number): Promise<void> {
    nowMs += aheadMs;
    await connection.write(async (sql) => {
      const rows = actions.flatMap((action) => [action + 1, 1, 0, 2]);
      const {
        outcomes: [outcomes = []],
      } = await recordEvents(sql, [eventBatch({ nowMs, rows })], Buffer.from("{}"));
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.kind !== "recorded") throw new Error(outcome.kind);
        events.push({ rowid: outcome.rowid, action: actions[index] ?? 0, atMs: outcome.timestampedMs });
      }
    });
  }

  async function remove(ids: readonly number[]): Promise<void> {
    const gone = new Set(ids);
    const there = events.filter(({ rowid }) => gone.has(rowid)).length;
    expect(await connection.write((sql) => deleteEvents(sql, JSON.stringify(ids)))).toBe(there);
    events = events.filter(({ rowid }) => !gone.has(rowid));
  }

  async function list(given: Partial<EventSelection>): Promise<{ ids: number[]; total: number }> {
    const query = { order: "desc" as const, limit: 3, page: 1, ...given };
    const { events: found, total } = await listEvents(connection.task(), query);
    return { ids: found.map(({ rowid }) => rowid), total };
  }

  function expected({ action, applications, fromMs = -Infinity, toMs = Infinity }: Query): number[] {
    return events
      .filter((event) => event.atMs >= fromMs && event.atMs < toMs)
      .filter((event) => action === undefined || action === `a${event.action}`)
      .filter((event) => applications?.includes(APPLICATIONS[event.action] ?? "") ?? true)
      .map(({ rowid }) => rowid);
  }

  /** By pages and by `after`, both ways. */
  async function expectExact(query: Query, limit: number): Promise<void> {
    const rising = expected(query);
    for (const order of ["asc", "desc"] as const) {
      const all = order === "asc" ? rising : rising.toReversed();
      const given = { ...query, order, limit };
      for (let page = 1; page <= Math.ceil(all.length / limit) + 1; page += 1) {
        const ids = all.slice((page - 1) * limit, page * limit);
        expect(await list({ ...given, page })).toEqual({ ids, total: all.length });
      }
      for (let after = order === "asc" ? 0 : Number.MAX_SAFE_INTEGER; ;) {
        const ids = all.filter((id) => (order === "asc" ? id > after : id < after)).slice(0, limit);
        expect(await list({ ...given, after })).toEqual({ ids, total: all.length });
        const last = ids.at(-1);
        if (last === undefined) break;
        after = last;
      }
    }
    if (query.fromMs === undefined && query.toMs === undefined) await expectWalked(query, limit, rising);
  }

  /** As streams read them: a page after the other, from the first one on. */
  async function expectWalked(query: Query, limit: number, rising: readonly number[]): Promise<void> {
    const walked: number[] = [];
    for (let after = 0, isFull = true; isFull;) {
      const asked = { ...query, after, limit, maxBytes: 1_000, payloads: false };
      const next = await nextEvents(connection.task(), asked);
      walked.push(...next.events.map(({ rowid }) => rowid));
      expect(next.through).toBeGreaterThanOrEqual(after);
      ({ through: after, isFull } = next);
    }
    expect(walked).toEqual(rising);
  }

  /** Passes over numbers, as a restore does: what comes next has rowids far beyond. */
  async function skip(rowids: number): Promise<void> {
    await connection.write((sql) =>
      sql.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'event'", rowids),
    );
  }

  function counts(): readonly { action_id: number; block: number; events: number }[] {
    return connection.read.rows("SELECT action_id, block, events FROM event_count ORDER BY 1, 2");
  }

  const some = fc.oneof(
    fc.record({
      kind: fc.constant("record" as const),
      actions: fc.array(fc.nat(APPLICATIONS.length - 1), { minLength: 1, maxLength: 40, size: "max" }),
      // Now and then the clock is set back.
      aheadMs: fc.oneof({ weight: 4, arbitrary: fc.nat(900) }, { weight: 1, arbitrary: fc.constant(-5_000) }),
    }),
    fc.record({
      kind: fc.constant("remove" as const),
      from: fc.double({ min: 0, max: 0.999, noNaN: true }),
      length: fc.nat(40),
      each: fc.integer({ min: 1, max: 3 }),
    }),
    fc.record({
      kind: fc.constant("skip" as const),
      rowids: fc.oneof(
        fc.integer({ min: 1, max: 3 * BLOCK_ROWIDS }),
        fc.integer({ min: 2 ** 30, max: 2 ** 45 }),
      ),
    }),
  );
  const query = fc.record(
    {
      action: fc.nat(APPLICATIONS.length).map((index) => `a${index}`),
      applications: fc.subarray(["x", "y", "z"]),
      fromMs: fc.integer({ min: 985_000, max: 1_006_000 }),
      toMs: fc.integer({ min: 985_000, max: 1_006_000 }),
    },
    { requiredKeys: [] },
  );

  it("give exact totals and pages, whatever is recorded, deleted and asked for", async () => {
    const story = fc.tuple(
      fc.array(some, { maxLength: 10, size: "max" }),
      fc.array(query, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 7 }),
    );
    await fc.assert(
      fc.asyncProperty(story, async ([steps, queries, limit]) => {
        connection.close();
        await open();
        for (const step of steps) {
          if (step.kind === "record") await record(step.actions, step.aheadMs);
          else if (step.kind === "skip") await skip(step.rowids);
          else {
            const ids = events.map(({ rowid }) => rowid).slice(Math.floor(step.from * events.length));
            await remove([...ids.slice(0, step.length).filter((_, at) => at % step.each === 0), 999_999]);
          }
        }
        for (const asked of queries) await expectExact(asked, limit);
        const kept = counts();
        await connection.write(async (sql) => {
          sql.run("DELETE FROM event_count");
          await countStoredEvents(sql);
        });
        expect(counts()).toEqual(kept);
      }),
      { numRuns: 60 },
    );
  });
});
