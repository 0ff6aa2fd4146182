import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import type { Store } from "../../src/store/store.ts";
import { newAction, openStore } from "./opened-store.ts";
import { fileSql } from "../support/file-sql.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const PAGE_BYTES = 4_096;
const EVENTS = 60;

test("an index that does not lead to all of the last events is reported at the start", async () => {
  const warnings: string[] = [];
  const open = (): Promise<Store> => {
    const logger = { ...silentLogger, warn: (_: object, message: string) => warnings.push(message) };
    return openStore(scratch.path, { logger });
  };
  const store = await open();
  const { rowid: actionId } = await newAction(store);
  const events = Array.from({ length: EVENTS }, () => ({
    actionId,
    revision: 1,
    payload: Buffer.from("{}"),
  }));
  await store.events.record(events, 1);
  await store.close();
  const file = join(scratch.path, "evreg.db");
  const [index] = fileSql(file, "SELECT rootpage FROM sqlite_schema WHERE name = 'event_action'");
  const bytes = readFileSync(file);
  const start = (Number(index?.["rootpage"]) - 1) * PAGE_BYTES;
  // The last byte of an entry is the rowid of its event. The entries stand from the end of the page on.
  const at = bytes.lastIndexOf(EVENTS / 2, start + PAGE_BYTES - 1);
  expect(at).toBeGreaterThan(start);
  bytes[at]! += EVENTS;
  writeFileSync(file, bytes);
  const damaged = await open();
  await damaged.close();
  expect(warnings).toEqual([expect.stringMatching(/missing from lists and totals.*doctor --deep/)]);
});
