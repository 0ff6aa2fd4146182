import { rmSync } from "node:fs";
import { storeContract } from "../contract/store.ts";
import { folderOfEmptyStore } from "../support/empty-store.ts";
import { inNewFolder } from "../support/thread-pool.ts";
import { openStore } from "./opened-store.ts";

storeContract("libSQL", async () => {
  const folder = await folderOfEmptyStore("evreg-store-");
  const reopen = () => openStore(folder);
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return { store: await inNewFolder(reopen), reopen, remove };
});
