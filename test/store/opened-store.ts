import { silentLogger } from "../../src/runtime/logger.ts";
import type { Action } from "../../src/domain/action.ts";
import { openLibsqlStore, type OpenOptions } from "../../src/store/libsql/open.ts";
import type { FileStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "./owner.ts";

export function openStore(folder: string, options: Partial<OpenOptions> = {}): Promise<FileStore> {
  return openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger, ...options });
}

export function newAction(store: Store, action = "a.b", nowMs = 1): Promise<Action> {
  return store.catalog.createAction({ action, application: "x", schemata: {} }, nowMs);
}
