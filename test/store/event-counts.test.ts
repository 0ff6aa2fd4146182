import * as fc from "fast-check";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventSelection } from "../../src/store/events.ts";
import { deleteEvents, closeBlocks, closePassedBlocks } from "../../src/store/libsql/events/counts.ts";
import { listEvents, nextEvents } from "../../src/store/libsql/events/list.ts";
import { recordEvents } from "../../src/store/libsql/events/record.ts";
import { loadLastNumbers } from "../../src/store/libsql/events/timeline.ts";
import { createAction } from "../../src/store/libsql/catalog/actions.ts";
import type { WriteConnection } from "../../src/store/libsql/thread/connection.ts";
import { ByteWriter } from "../../src/store/libsql/thread/protocol.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";
import { eventBatch } from "./batches.ts";

/** Rowids of a block: so few that some dozen events fill several. */
const SMALL = 4;

/** Of each action, its application. */
const APPLICATIONS = ["x", "x", "y", "y", "y"];

interface Recorded {
  readonly rowid: number;
  readonly action: number;
  readonly atMs: number;
}

type Query = Pick<EventSelection, "action" | "applications" | "fromMs" | "toMs">;

const scratch = useScratch();

describe("counts of sealed blocks", () => {
  let connection: WriteConnection;
  /** What must be in the file. */
  let events: Recorded[] = [];
  let nowMs = 0;
  let files = 0;

  afterEach(() => connection.close());

  function open(): void {
    connection = openFile(join(scratch.path, `${(files += 1)}.db`));
    connection.read.run("PRAGMA synchronous = OFF");
    connection.write((sql) => {
      for (const [index, application] of APPLICATIONS.entries()) {
        createAction(sql, { action: `a${index}`, application, schemata: {} }, 1);
      }
    });
    events = [];
    nowMs = 1_000_000;
  }
  beforeEach(open);

  function record(actions: readonly number[], aheadMs: number): void {
    nowMs += aheadMs;
    connection.write((sql) => {
      const before = loadLastNumbers(sql).event;
      const rows = actions.flatMap((action) => [action + 1, 1, 0, 2]);
      const [outcomes = []] = recordEvents(sql, [eventBatch({ nowMs, rows })], Buffer.from("{}"));
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.kind !== "recorded") throw new Error(outcome.kind);
        events.push({ rowid: outcome.rowid, action: actions[index] ?? 0, atMs: outcome.timestampedMs });
      }
      closePassedBlocks(sql, before, loadLastNumbers(sql).event, SMALL);
    });
  }

  function remove(ids: readonly number[]): void {
    const gone = new Set(ids);
    const there = events.filter(({ rowid }) => gone.has(rowid)).length;
    expect(connection.write((sql) => deleteEvents(sql, ids, SMALL))).toBe(there);
    events = events.filter(({ rowid }) => !gone.has(rowid));
  }

  function list(given: Partial<EventSelection>): { ids: number[]; total: number } {
    const query = { order: "desc" as const, limit: 3, page: 1, ...given };
    const { events: found, total } = listEvents(connection.read, query, new ByteWriter(), SMALL);
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
  function expectExact(query: Query, limit: number): void {
    const rising = expected(query);
    for (const order of ["asc", "desc"] as const) {
      const all = order === "asc" ? rising : rising.toReversed();
      const given = { ...query, order, limit };
      for (let page = 1; page <= Math.ceil(all.length / limit) + 1; page += 1) {
        const ids = all.slice((page - 1) * limit, page * limit);
        expect(list({ ...given, page })).toEqual({ ids, total: all.length });
      }
      for (let after = order === "asc" ? 0 : Number.MAX_SAFE_INTEGER; ;) {
        const ids = all.filter((id) => (order === "asc" ? id > after : id < after)).slice(0, limit);
        expect(list({ ...given, after })).toEqual({ ids, total: all.length });
        const last = ids.at(-1);
        if (last === undefined) break;
        after = last;
      }
    }
    if (query.fromMs === undefined && query.toMs === undefined) expectWalked(query, limit, rising);
  }

  /** As streams read them: a page after the other, from the first one on. */
  function expectWalked(query: Query, limit: number, rising: readonly number[]): void {
    const walked: number[] = [];
    for (let after = 0, isFull = true; isFull;) {
      const asked = { ...query, after, limit, maxBytes: 1_000, payloads: false };
      const next = nextEvents(connection.read, asked, new ByteWriter());
      walked.push(...next.events.map(({ rowid }) => rowid));
      expect(next.through).toBeGreaterThanOrEqual(after);
      ({ through: after, isFull } = next);
    }
    expect(walked).toEqual(rising);
  }

  /** As a restore does: what comes next has rowids far beyond. */
  function skip(rowids: number): void {
    connection.write((sql) => {
      sql.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'event'", rowids);
      const { event } = loadLastNumbers(sql);
      closeBlocks(sql, event, SMALL);
    });
  }

  function blocksByAction(): unknown {
    return connection.read.rows(
      "SELECT action_id, count(*) AS blocks, sum(events) AS events FROM event_count GROUP BY action_id",
    );
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
      places: fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { maxLength: 20 }),
    }),
    fc.record({
      kind: fc.constant("skip" as const),
      rowids: fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 2 ** 30, max: 2 ** 45 })),
    }),
    fc.record({
      kind: fc.constant("empty" as const),
      from: fc.double({ min: 0, max: 0.999, noNaN: true }),
      length: fc.nat(40),
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

  it("give exact totals and pages, whatever is recorded, deleted and asked for", () => {
    const story = fc.tuple(
      fc.array(some, { maxLength: 10, size: "max" }),
      fc.array(query, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 7 }),
    );
    fc.assert(
      fc.property(story, ([steps, queries, limit]) => {
        connection.close();
        open();
        for (const step of steps) {
          const at = (place: number): number => Math.floor(place * events.length);
          if (step.kind === "record") record(step.actions, step.aheadMs);
          else if (step.kind === "skip") skip(step.rowids);
          else if (step.kind === "remove")
            remove([...step.places.map((place) => events[at(place)]?.rowid ?? 0), 999]);
          else remove(events.slice(at(step.from), at(step.from) + step.length).map(({ rowid }) => rowid));
        }
        for (const asked of queries) expectExact(asked, limit);
      }),
      { numRuns: 60 },
    );
  });

  it("exist once per sealed block, and none remains for what was deleted", () => {
    record(
      Array.from({ length: 80 }, (_, index) => index % 2),
      1,
    );
    // Rowids 1 to 80: 20 blocks of 4 end by 79.
    expect(blocksByAction()).toEqual([
      { action_id: 0, blocks: 20, events: 79 },
      { action_id: 1, blocks: 20, events: 40 },
      { action_id: 2, blocks: 20, events: 39 },
    ]);
    remove(Array.from({ length: 60 }, (_, index) => index + 1));
    expect(blocksByAction()).toEqual([
      { action_id: 0, blocks: 5, events: 19 },
      { action_id: 1, blocks: 5, events: 10 },
      { action_id: 2, blocks: 5, events: 9 },
    ]);
    // The last one shows how far blocks are closed.
    remove(Array.from({ length: 20 }, (_, index) => index + 61));
    expect(blocksByAction()).toEqual([{ action_id: 0, blocks: 1, events: 0 }]);
  });

  it.each([60, 2 ** 40])("are exact on both sides of %d skipped numbers", (rowids) => {
    const actions = Array.from({ length: 20 }, (_, index) => index % 3);
    record(actions, 1);
    skip(rowids);
    record(actions, 1);
    record(actions, 1);
    expectExact({}, 7);
    expectExact({ applications: ["x", "y"], fromMs: 1_000_002 }, 7);
    const { n } = connection.read.first<{ n: number }>("SELECT count(*) AS n FROM event_count")!;
    expect(n).toBeLessThan(200);
  });

  it("are created where they are missing", () => {
    connection.write((sql) =>
      sql.run(
        `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 90)
          INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
          SELECT n * 2, 1 + n % 5, 1, n, x'7b7d' FROM n`,
      ),
    );
    for (let n = 1; n <= 90; n += 1) events.push({ rowid: n * 2, action: n % 5, atMs: n });
    expectExact({ applications: ["y"], fromMs: 10 }, 7);
    connection.write((sql) => closeBlocks(sql, 180, SMALL));
    expect(blocksByAction()).toContainEqual({ action_id: 0, blocks: 45, events: 89 });
    expectExact({}, 7);
  });
});
