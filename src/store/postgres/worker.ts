import { type Operations, read, type Work, write } from "../sql/operation.ts";
import { OPERATIONS } from "../sql/operations.ts";
import { type Notice, prepareData } from "../sql/prepare.ts";
import type { OpenReport } from "../thread/protocol.ts";
import { StoreWorker, traitsOf } from "../thread/worker.ts";
import { PostgresReader, PostgresWriter } from "./connection.ts";
import { encryptSecrets } from "./encrypt-secrets.ts";
import { inspect, risksOf } from "./inspect.ts";
import { makeTables } from "./make-tables.ts";
import { disagreementsOf, join, leave, listNodes, NODE_OPERATIONS, OTHERS_OPERATIONS } from "./nodes.ts";
import type { DatabaseReaderSetup, DatabaseWriterSetup } from "./setup.ts";

const OWN_OPERATIONS = {
  node: NODE_OPERATIONS,
  others: OTHERS_OPERATIONS,
  database: { nodes: read(listNodes), inspect: read(inspect) },
} as const satisfies Operations;

/** What only a store in a database can do. */
export type OwnOperations = typeof OWN_OPERATIONS;

const operations = {
  ...OPERATIONS,
  ...OWN_OPERATIONS,
  /** That a transaction counts itself is a real write, however few bytes it has. */
  file: { probe: write(() => Promise.resolve()) },
} satisfies Operations;

new StoreWorker({
  operations,
  tasks: {},
  async openToWrite(setup: DatabaseWriterSetup) {
    await makeTables(setup, setup.needsData);
    const connection = new PostgresWriter(setup, setup.encryption?.key, setup.node.instance);
    try {
      return { connection, report: await prepare(connection, setup) };
    } catch (error) {
      await connection.write((work) => leave(work, setup.node.instance)).catch(() => undefined);
      // A connection that stays open would keep the thread.
      await connection.close();
      throw error;
    }
  },
  openToRead: (setup: DatabaseReaderSetup) => new PostgresReader(setup, setup.key),
}).start();

async function prepare(
  connection: PostgresWriter,
  setup: DatabaseWriterSetup,
): Promise<OpenReport<DatabaseReaderSetup>> {
  const { url, prepares, statementTimeoutMs, encryption, node } = setup;
  const dataId = await connection.write((work) => join(work, node));
  const nowMs = setup.nowMs ?? (await connection.write(timeOfDatabase));
  const notices = await connection.write(riskNotices);
  if (node.serves) notices.push(...(await connection.write(disagreementNotices)));
  await connection.write((work) => encryptSecrets(work, encryption, node.instance));
  const prepared = await prepareData((step) => connection.write(step), nowMs, "the database");
  notices.push(...prepared.notices);
  const reader: DatabaseReaderSetup = { url, prepares, statementTimeoutMs, key: encryption?.key };
  return { operations: traitsOf(operations), dataId, isNew: prepared.isNew, notices, reader };
}

async function disagreementNotices(work: Work): Promise<readonly Notice[]> {
  return (await disagreementsOf(work)).map((difference) => {
    return {
      level: "warn",
      details: {},
      message: `The nodes on this database have different settings: ${difference}.`,
    };
  });
}

async function timeOfDatabase(work: Work): Promise<number> {
  return await work.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint");
}

/** Says which settings of the database let it lose what it has acknowledged. */
async function riskNotices(work: Work): Promise<Notice[]> {
  return (await risksOf(work)).map((setting) => {
    const message = `The database's setting ${setting} is off: when the database or its machine crashes, events that were acknowledged are lost.`;
    return { level: "warn", details: { setting }, message };
  });
}
