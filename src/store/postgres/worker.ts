import { EvregError } from "../../domain/error.ts";
import { type EncryptionKeys, vaultsFor } from "../secret-cipher.ts";
import { sealSecrets } from "../sql/catalog/credentials.ts";
import type { DatabaseFacts } from "../store.ts";
import { kept, type Notice, type Operations, read, type Work, write } from "../sql/operation.ts";
import { OPERATIONS, prepareData } from "../sql/operations.ts";
import type { OpenReport } from "../thread/protocol.ts";
import { StoreWorker, traitsOf } from "../thread/worker.ts";
import { type DatabaseSetup, PostgresReader, PostgresWriter } from "./connection.ts";
import { makeTables } from "./make-tables.ts";
import * as nodes from "./nodes.ts";

export interface DatabaseWriterSetup extends DatabaseSetup {
  readonly encryption: EncryptionKeys | undefined;
  readonly node: nodes.NodeIdentity;
  /** Whether a database that holds no data yet is refused, and left as it is. */
  readonly needsData: boolean;
  /** Left out for the time of the database. */
  readonly nowMs: number | undefined;
}

const OWN_OPERATIONS = {
  node: { share: write(nodes.share), leave: write(nodes.leave) },
  others: { broadcast: write(nodes.broadcast), receive: kept(write(nodes.receive)) },
  database: { nodes: read(nodes.listNodes), inspect: read(inspect) },
} as const satisfies Operations;

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
    const connection = new PostgresWriter(setup, setup.node.instance);
    try {
      return { connection, report: await prepare(connection, setup) };
    } catch (error) {
      await connection.write((work) => nodes.leave(work, setup.node.instance)).catch(() => undefined);
      // A connection that stays open would keep the thread.
      await connection.close();
      throw error;
    }
  },
  openToRead: (setup: DatabaseSetup) => new PostgresReader(setup),
}).start();

async function prepare(
  connection: PostgresWriter,
  setup: DatabaseWriterSetup,
): Promise<OpenReport<DatabaseSetup>> {
  const { url, statementTimeoutMs, key, encryption, node } = setup;
  const dataId = await connection.write((work) => nodes.join(work, node));
  const nowMs = setup.nowMs ?? (await connection.write(timeOfDatabase));
  const notices = await connection.write(riskNotices);
  if (node.serves) notices.push(...(await connection.write(differingNotices)));
  await connection.write((work) => encryptSecrets(work, encryption, node.instance));
  const isNew = await prepareData((step) => connection.write(step), nowMs, "the database", notices);
  const reader: DatabaseSetup = { url, statementTimeoutMs, key };
  return { operations: traitsOf(operations), dataId, isNew, notices, reader };
}

/**
 * Seals the secrets with the key where they are not yet, or were with the previous one.
 * @param node the one that starts
 * @throws EvregError `usage` with the key that is missing or wrong; `conflict` for another one than nodes that run have
 */
async function encryptSecrets(work: Work, keys: EncryptionKeys | undefined, node: string): Promise<void> {
  const stored = await work.value<string | undefined>("SELECT proof FROM encryption");
  const vaults = vaultsFor(stored, keys, "The database");
  if (!vaults.isNewKey) return;
  const others = await work.value<number>(
    `SELECT count(*) FROM node WHERE ${nodes.IS_LIVING} AND serves = 1 AND id <> ?`,
    node,
  );
  if (others > 0) {
    const message =
      "The encryption key is another one than that of the nodes that run, and they could not read what it encrypts. Stop all of them, and start them with this key.";
    throw new EvregError("conflict", message);
  }
  await sealSecrets(work, vaults);
}

async function differingNotices(work: Work): Promise<readonly Notice[]> {
  const settings = await work.column<string>(nodes.DIFFERING);
  if (settings.length === 0) return [];
  const message = `The nodes on this database have different settings: ${settings.join(", ")}.`;
  return [{ level: "warn", details: {}, message }];
}

async function timeOfDatabase(work: Work): Promise<number> {
  return await work.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint");
}

/** Settings without which a crash of the database loses what was acknowledged. */
const RISKS = ["fsync", "full_page_writes", "synchronous_commit"];

async function risksOf(work: Work): Promise<readonly string[]> {
  return await work.column(
    "SELECT name FROM list(?: name text) AS durable WHERE current_setting(name) = 'off'",
    RISKS,
  );
}

async function inspect(work: Work): Promise<DatabaseFacts> {
  const facts = await work.first<Pick<DatabaseFacts, "version" | "bytes">>(
    "SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS bytes",
  );
  return { ...facts!, risks: await risksOf(work), differing: await work.column<string>(nodes.DIFFERING) };
}

async function riskNotices(work: Work): Promise<Notice[]> {
  return (await risksOf(work)).map((setting) => {
    const message = `The database's setting ${setting} is off: when the database or its machine crashes, events that were acknowledged are lost.`;
    return { level: "warn", details: { setting }, message };
  });
}
