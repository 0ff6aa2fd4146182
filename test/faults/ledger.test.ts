import { expect, test } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { testOwner } from "../store/owner.ts";
import { useScratch } from "../store/scratch.ts";
import { startReceiver } from "../support/receiver.ts";
import { Ledger } from "./ledger.ts";

// A ledger that cannot fail proves nothing.

const scratch = useScratch();

test("the ledger finds what was lost, invented, altered, and sent without a record", async () => {
  const store = await openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });
  const { rowid: actionId } = await store.catalog.createAction(
    { action: "a.b", application: "x", schemata: {} },
    1,
  );
  const record = async (payload: string): Promise<void> => {
    await store.events.record([{ actionId, revision: 1, payload: Buffer.from(payload) }], 1);
  };
  // The first is as it should be but for its delivery; nobody sent 7; 2 is stored twice.
  for (const n of [1, 7, 2, 2]) await record(`{"n":${n}}`);
  await store.close();

  const ledger = new Ledger();
  for (let count = 0; count < 4; count += 1) ledger.next();
  ledger.answered(1, 201, 1);
  ledger.answered(2, 503, undefined);
  ledger.answered(3, 201, 99);

  const receiver = await startReceiver();
  ledger.watch(receiver);
  for (const [id, body] of [
    ["1_1", '{"event_id":"1","payload":{"n":1},"delivery_attempt":1}'],
    ["5_2", '{"event_id":"5","payload":{"n":1},"delivery_attempt":2}'],
  ] as const) {
    await fetch(receiver.url, { method: "POST", headers: { "x-evreg-delivery": id }, body });
  }
  await receiver.close();

  expect(ledger.balance(scratch.path)).toEqual({
    sent: 4,
    acknowledged: 2,
    refused: 1,
    unanswered: 1,
    stored: 4,
    lost: 1,
    undelivered: 2,
    invented: 2,
    refusedButStored: 1,
    repeated: 1,
    duplicates: 1,
    altered: 1,
    unrecorded: 2,
    unseen: 0,
    integrity: "ok",
  });
  expect(() => ledger.expectWhole(scratch.path)).toThrow("lost");
});
