import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { testOwner } from "../store/owner.ts";

const FILE = "evreg.db";

/** A data file without data, and where in it the identity of the data is. */
interface EmptyFile {
  readonly bytes: Buffer;
  readonly idAt: number;
}

let emptyFile: Promise<EmptyFile> | undefined;

/**
 * Makes a new folder with the data file of an empty store in it. To make the tables costs as much as all else that an opening
 * does, so each process makes them once. Each copy of the file gets an identity of its own.
 */
export async function folderOfEmptyStore(prefix: string): Promise<string> {
  const { bytes, idAt } = await (emptyFile ??= makeEmptyFile());
  bytes.write(randomBytes(16).toString("hex"), idAt, "latin1");
  const folder = mkdtempSync(join(tmpdir(), prefix));
  writeFileSync(join(folder, FILE), bytes, { mode: 0o600 });
  return folder;
}

async function makeEmptyFile(): Promise<EmptyFile> {
  const folder = mkdtempSync(join(tmpdir(), "evreg-empty-"));
  const store = await openLibsqlStore({ folder, owner: testOwner("test"), logger: silentLogger });
  await store.close();
  const bytes = readFileSync(join(folder, FILE));
  rmSync(folder, { recursive: true });
  return { bytes, idAt: bytes.indexOf(store.dataId, 0, "latin1") };
}
