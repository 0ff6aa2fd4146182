import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeContract } from "../contract/store.ts";
import { inNewFolder } from "../support/thread-pool.ts";
import { openStore } from "./opened-store.ts";

storeContract("libSQL", async () => {
  const folder = mkdtempSync(join(tmpdir(), "evreg-store-"));
  const reopen = () => openStore(folder);
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return { store: await inNewFolder(reopen), reopen, remove };
});
