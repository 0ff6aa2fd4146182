import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "../../src/runtime/logger.ts";
import type { Action } from "../../src/domain/action.ts";
import { openLibsqlStore, type OpenOptions } from "../../src/store/libsql/open.ts";
import type { FileStore } from "../../src/store/libsql/store.ts";
import type { Store } from "../../src/store/store.ts";
import type { OpenedStore } from "../contract/store/fixture.ts";
import { inNewFolder } from "../support/thread-pool.ts";
import { testOwner } from "./owner.ts";

export function openStore(folder: string, options: Partial<OpenOptions> = {}): Promise<FileStore> {
  return openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger, ...options });
}

export function newAction(store: Store, action = "a.b", nowMs = 1): Promise<Action> {
  return store.catalog.createAction({ action, application: "x", schemata: {} }, nowMs);
}

/**
 * A store in a folder of its own.
 * @param prepare done with the folder before it is opened
 */
export async function openNewStore(
  prepare: (folder: string, open: () => Promise<Store>) => Promise<void> = () => Promise.resolve(),
): Promise<OpenedStore> {
  const folder = mkdtempSync(join(tmpdir(), "evreg-store-"));
  const reopen = (): Promise<Store> => openStore(folder);
  await prepare(folder, reopen);
  return {
    store: await inNewFolder(reopen),
    reopen,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
