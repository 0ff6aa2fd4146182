import { rmSync } from "node:fs";
import { systemClock } from "../../src/runtime/clock.ts";
import { storeContract } from "../contract/store.ts";
import { folderOfEmptyStore } from "../support/empty-store.ts";
import { inNewFolder } from "../support/thread-pool.ts";
import { openStore } from "./opened-store.ts";

storeContract("libSQL", async () => {
  const folder = await folderOfEmptyStore("evreg-store-");
  const reopen = () => openStore(folder);
  const opened = await inNewFolder(reopen);
  let store = opened;
  const startAt = async (nowMs: number) => {
    await store.close();
    return (store = await openStore(folder, { clock: { ...systemClock, now: () => nowMs } }));
  };
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return { store: opened, startAt, reopen, remove };
});
