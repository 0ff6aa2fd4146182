import { join } from "node:path";
import { describe } from "vitest";
import { backlogSuite } from "../contract/store/backlog.ts";
import { orderedSuite } from "../contract/store/ordered.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { moveNumbers } from "../../src/store/libsql/files/file-tasks.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "./owner.ts";

/** Numbers greater than today's time in milliseconds, with which places in an order are compared. */
const FAR = { event: 2 ** 50, delivery: 2 ** 50 };

const open = (folder: string): Promise<Store> =>
  openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger });

async function openFar(folder: string): Promise<Store> {
  await (await open(folder)).close();
  await moveNumbers(join(folder, "evreg.db"), Date.now(), FAR);
  return open(folder);
}

describe("store contract: libSQL, with numbers as after restores", () => {
  describe("ordered subscriptions", () => orderedSuite(openFar));
  describe("the backlog and commits", () => backlogSuite(openFar));
});
