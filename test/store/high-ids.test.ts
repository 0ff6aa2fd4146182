import { join } from "node:path";
import { describe } from "vitest";
import { backlogSuite } from "../contract/store/backlog.ts";
import type { OpenedStore } from "../contract/store/fixture.ts";
import { orderSuite } from "../contract/store/orders.ts";
import { fileTask } from "../../src/store/libsql/files/file-tasks.ts";
import { openNewStore } from "./opened-store.ts";

/** Numbers greater than today's time in milliseconds, with which places in an order are compared. */
const FAR = { event: 2 ** 50, delivery: 2 ** 50 };

function openFar(): Promise<OpenedStore> {
  return openNewStore(async (folder, open) => {
    await (await open()).close();
    await fileTask("moveNumbers", join(folder, "evreg.db"), Date.now(), FAR);
  });
}

describe("store contract: libSQL, with numbers as after restores", () => {
  describe("ordered subscriptions", () => orderSuite(openFar));
  describe("the backlog and commits", () => backlogSuite(openFar));
});
