import { restore, type RestoredData, type RestoreOptions } from "../../src/store/libsql/files/restore.ts";
import type { Store } from "../../src/store/store.ts";

/** A backup of the store. */
export async function backupOf(store: Store): Promise<Buffer> {
  const backup = await store.files!.backup();
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
