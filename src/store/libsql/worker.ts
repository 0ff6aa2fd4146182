import type { EncryptionKeys } from "../secret-cipher.ts";
import { countStoredEvents } from "../sql/events/counts.ts";
import { type Notice, type Operations, write } from "../sql/operation.ts";
import { ALL_SHARDS } from "../rules/shards.ts";
import { OPERATIONS, prepareData } from "../sql/operations.ts";
import { releaseLeases } from "../sql/queue/leases.ts";
import type { OpenReport } from "../thread/protocol.ts";
import { StoreWorker, traitsOf } from "../thread/worker.ts";
import { ReadConnection, type ReaderSetup, type WriteConnection } from "./connection.ts";
import { examineFile, settleFile } from "./files/closed-file.ts";
import { dataIdentity, moveNumbers } from "./files/id-reservation.ts";
import { copyData } from "./files/live-copy.ts";
import { openDataFile } from "./files/open-file.ts";

export interface WriterSetup extends Pick<ReaderSetup, "path"> {
  readonly encryption: EncryptionKeys | undefined;
  readonly nowMs: number;
}

/** What the threads that have the data file open do with the file itself. */
const FILE_OPERATIONS = {
  /** Makes a real write of this many bytes, to find out whether the disk takes them. The next one frees them. */
  probe: write(
    async (sql, bytes: number) =>
      await sql.run(
        `INSERT INTO write_check (one, filler) VALUES (1, zeroblob(?))
          ON CONFLICT DO UPDATE SET filler = excluded.filler`,
        bytes,
      ),
  ),
} as const satisfies Operations[string];

/**
 * What a thread of its own can do with a file: one that nobody has open, or one beside the two threads that have the data file
 * open.
 */
const FILE_TASKS = { examineFile, settleFile, moveNumbers, copyData } as const;
export type FileTasks = typeof FILE_TASKS;

const operations = { ...OPERATIONS, file: FILE_OPERATIONS };

async function prepare(
  connection: WriteConnection,
  { nowMs, path, encryption }: WriterSetup,
  notices: Notice[],
): Promise<OpenReport<ReaderSetup>> {
  const isNew = await prepareData((step) => connection.write(step), nowMs, "the data file", notices);
  // The file's lock proves that nobody works on its leases.
  const deliveries = await connection.write((work) => releaseLeases(work, nowMs, ALL_SHARDS));
  if (deliveries > 0) {
    const message = "Deliveries that were under way at a crash are due again.";
    notices.push({ level: "info", details: { deliveries }, message });
  }
  await connection.write(countStoredEvents);
  return {
    operations: traitsOf(operations),
    reader: { path, file: connection.file, key: encryption?.key },
    dataId: dataIdentity(connection.read),
    isNew,
    notices,
  };
}

new StoreWorker({
  operations,
  tasks: FILE_TASKS,
  async openToWrite(setup: WriterSetup) {
    const notices: Notice[] = [];
    const connection = await openDataFile(setup.path, setup.encryption, notices);
    return { connection, report: await prepare(connection, setup, notices) };
  },
  openToRead: (setup: ReaderSetup) => ReadConnection.open(setup),
}).start();
