import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { removeExpired } from "../../src/store/libsql/history/retention.ts";
import { createAction } from "../../src/store/libsql/catalog/actions.ts";
import { createSubscription } from "../../src/store/libsql/catalog/subscriptions.ts";
import { recordAndClaim } from "../../src/store/libsql/queue/claim.ts";
import { DELIVERY_STATE } from "../../src/store/libsql/queue/delivery-state.ts";
import type { WriteConnection } from "../../src/store/libsql/thread/connection.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";
import { eventBatch, withBytes } from "./batches.ts";

describe("removing events", () => {
  const scratch = useScratch();
  let connection: WriteConnection | undefined;
  let files = 0;
  afterEach(() => connection?.close());

  function open(): WriteConnection {
    connection?.close();
    connection = openFile(join(scratch.path, `${(files += 1)}.db`));
    connection.read.run("PRAGMA synchronous = OFF");
    return connection;
  }

  it("reuses the freed space, so the file does not grow", () => {
    const file = open();
    file.write((sql) => {
      createAction(sql, { action: "a", application: "x", schemata: {} }, 1);
      const given = { application: "x", subscription: "s", action: "a", handler: "h", secret: "s" };
      createSubscription(sql, { ...given, maxRetries: 1, active: true }, 1);
    });
    const fill = (): void => {
      for (let call = 0; call < 4; call += 1) {
        const rows = Array.from({ length: 500 }, () => [1, 1, 0, 900]).flat();
        file.write((sql) => recordAndClaim(withBytes(sql, payload), [eventBatch({ nowMs: 1, rows })]));
        file.write((sql) =>
          sql.run(`UPDATE delivery SET state = ${DELIVERY_STATE.delivered}, due_ms = NULL`),
        );
      }
    };
    const payload = Buffer.alloc(900, "x");
    const pages = (): number => file.read.value("PRAGMA page_count");
    fill();
    const first = pages();
    for (let round = 0; round < 3; round += 1) {
      removeAll(file);
      expect(file.read.value("SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM delivery)")).toBe(
        0,
      );
      fill();
      // Larger rowids take a byte more here and there.
      expect(pages()).toBeLessThanOrEqual(first * 1.02);
    }
  });

  it("uses short transactions, however large the payloads are", () => {
    const file = open();
    file.write((sql) => createAction(sql, { action: "a", application: "x", schemata: {} }, 1));
    const payload = Buffer.alloc(1_000_000, "x");
    const rows = Array.from({ length: 7 }, () => [1, 1, 0, payload.length]).flat();
    file.write((sql) => recordAndClaim(withBytes(sql, payload), [eventBatch({ nowMs: 1, rows })]));
    expect(removeAll(file)).toEqual([2, 2, 2, 1]);
  });
});

/** Answers how many events each call removed. */
function removeAll(file: WriteConnection): readonly number[] {
  const calls: number[] = [];
  for (let after: number | undefined = 0; after !== undefined;) {
    const from: number = after;
    const { events, next } = file.write((sql) => removeExpired(sql, { beforeMs: Infinity }, from));
    calls.push(events);
    after = next;
  }
  return calls;
}
