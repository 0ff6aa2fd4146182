import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { Action } from "../../src/domain/action.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import type { SubscriptionRecord } from "../../src/store/catalog.ts";
import type { EventRecord } from "../../src/store/events.ts";
import { restore, type RestoredData, type RestoreOptions } from "../../src/store/libsql/files/restore.ts";
import { openLibsqlStore, type OpenOptions } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "./owner.ts";

/** A folder of its own for each test, removed after it. */
export function useScratch(): { readonly path: string } {
  const scratch = { path: "" };
  beforeEach(() => {
    scratch.path = mkdtempSync(join(tmpdir(), "evreg-store-"));
  });
  afterEach(() => rmSync(scratch.path, { recursive: true, force: true }));
  return scratch;
}

export function openStore(folder: string, options: Partial<OpenOptions> = {}): Promise<Store> {
  return openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger, ...options });
}

export function newAction(store: Store, action = "a.b", nowMs = 1): Promise<Action> {
  return store.catalog.createAction({ action, application: "x", schemata: {} }, nowMs);
}

/** A subscription of the application `x` to an action. */
export function subscriptionTo(action: string, given: Partial<SubscriptionRecord> = {}): SubscriptionRecord {
  const named = { application: "x", subscription: "s", action, handler: "https://h.example/", secret: "s" };
  return { ...named, maxRetries: 1, active: true, ...given };
}

/** An event by the first revision of an action. */
export function eventOf(actionId: number, payload: string | Buffer = "{}"): EventRecord {
  return { actionId, revision: 1, payload: Buffer.from(payload) };
}

/** The payloads of a page of events, the oldest first; `undefined` for damaged ones. */
export async function payloadsIn(store: Store, page = 1): Promise<readonly (string | undefined)[]> {
  const { events } = await store.events.list({ order: "asc", limit: 500, page });
  return events.map(({ payload }) => payload && Buffer.from(payload).toString());
}

/** A backup of the store. */
export async function backupOf(store: Store): Promise<Buffer> {
  const backup = await store.backup!();
  const pieces: Uint8Array[] = [];
  for await (const piece of backup.content()) pieces.push(piece);
  await backup.close();
  return Buffer.concat(pieces);
}

type Choices = Partial<Pick<RestoreOptions, "encryption" | "force" | "nowMs">>;

/** Makes a backup, which messages call `b.db`, the data of a folder. */
export function putBackup(folder: string, bytes: Uint8Array, choices: Choices = {}): Promise<RestoredData> {
  return restore({
    folder,
    name: "b.db",
    content: piecewise(bytes),
    encryption: undefined,
    force: false,
    nowMs: 1,
    ...choices,
  });
}

async function* piecewise(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  await Promise.resolve();
  for (let at = 0; at < bytes.length; at += 50_000) yield bytes.subarray(at, at + 50_000);
}
