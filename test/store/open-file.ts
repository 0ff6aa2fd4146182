import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDataFile } from "../../src/store/libsql/files/open-file.ts";
import type { WriteConnection } from "../../src/store/libsql/connection.ts";

/** A connection to a data file of today's form, made where there is none, with nothing around it. */
export async function openFile(file: string): Promise<WriteConnection> {
  if (!existsSync(file)) writeFileSync(file, "", { mode: 0o600 });
  return await openDataFile(file, undefined, []);
}

export interface CrashedFiles {
  readonly db: Buffer;
  readonly wal: Buffer;
}

/** Bytes of a frame of the log: its header and a page. */
export const FRAME_BYTES = 24 + 4_096;
const LOG_HEADER_BYTES = 32;

/** What is on the disk after `act` and a `kill -9`: a data file, and all of `act` in its log. */
export async function crashed(
  act: (connection: WriteConnection, log: string) => Promise<void>,
): Promise<CrashedFiles> {
  const folder = mkdtempSync(join(tmpdir(), "evreg-crashed-"));
  const file = join(folder, "evreg.db");
  const connection = await openFile(file);
  try {
    await act(connection, `${file}-wal`);
    return { db: readFileSync(file), wal: readFileSync(`${file}-wal`) };
  } finally {
    connection.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Changes a byte of the page in the last frame of a commit of the log, which are counted from 0. */
export function damageCommit(wal: Buffer, commit: number): void {
  const frames = Array.from({ length: (wal.length - LOG_HEADER_BYTES) / FRAME_BYTES }, (_, index) => index);
  const places = frames.map((index) => LOG_HEADER_BYTES + index * FRAME_BYTES);
  const commits = places.filter((at) => wal.readUInt32BE(at + 4) !== 0);
  wal[commits.at(commit)! + 2_000]! ^= 1;
}

export function putFiles(folder: string, { db, wal }: CrashedFiles): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "evreg.db"), db);
  writeFileSync(join(folder, "evreg.db-wal"), wal);
}
