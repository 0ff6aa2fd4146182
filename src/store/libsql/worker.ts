import type { EncryptionKeys } from "../secret-cipher.ts";
import { countStoredEvents } from "../sql/events/counts.ts";
import { OPERATIONS } from "../sql/operations.ts";
import { type Notice, prepareData, releasedNotice } from "../sql/prepare.ts";
import { ALL, releaseLeases } from "../sql/queue/leases.ts";
import type { OpenReport } from "../thread/protocol.ts";
import { StoreWorker, traitsOf } from "../thread/worker.ts";
import { ReadConnection, type ReaderSetup, type WriteConnection } from "./connection.ts";
import { FILE_OPERATIONS, FILE_TASKS } from "./file-operations.ts";
import { dataIdentity } from "./files/id-reservation.ts";
import { openDataFile } from "./files/open-file.ts";

export interface WriterSetup extends Pick<ReaderSetup, "path"> {
  readonly encryption: EncryptionKeys | undefined;
  readonly nowMs: number;
}

const operations = { ...OPERATIONS, file: FILE_OPERATIONS };

async function prepare(
  connection: WriteConnection,
  { nowMs, encryption, path }: WriterSetup,
  opened: readonly Notice[],
): Promise<OpenReport<ReaderSetup>> {
  const notices = [...opened];
  const prepared = await prepareData((step) => connection.write(step), nowMs, "the data file");
  notices.push(...prepared.notices);
  // The file's lock proves that nobody works on its leases.
  notices.push(...releasedNotice(await connection.write((work) => releaseLeases(work, nowMs, ALL))));
  await connection.write(countStoredEvents);
  return {
    operations: traitsOf(operations),
    reader: { path, file: connection.file, key: encryption?.key },
    dataId: dataIdentity(connection.read),
    isNew: prepared.isNew,
    notices,
  };
}

new StoreWorker({
  operations,
  tasks: FILE_TASKS,
  async openToWrite(setup: WriterSetup) {
    const { connection, notices } = await openDataFile(setup.path, setup.encryption);
    return { connection, report: await prepare(connection, setup, notices) };
  },
  openToRead: (setup: ReaderSetup) => ReadConnection.open(setup),
}).start();
