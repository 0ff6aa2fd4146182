import { hostname } from "node:os";
import { EvregError } from "../../domain/error.ts";
import type { Owner } from "../../runtime/owner-file.ts";
import { type Operations, type Work, write } from "../sql/operation.ts";
import { OPERATIONS } from "../sql/operations.ts";
import { type Notice, prepareData } from "../sql/prepare.ts";
import type { OpenReport } from "../thread/protocol.ts";
import { StoreWorker, traitsOf } from "../thread/worker.ts";
import { PostgresReader, PostgresWriter, type Turn } from "./connection.ts";
import { encryptSecrets } from "./encrypt-secrets.ts";
import { makeTables } from "./make-tables.ts";
import type { ReaderSetup, WriterSetup } from "./setup.ts";

/** So long nobody else may serve after the last sign of who does. */
const TURN_SECONDS = 12;

const KEEP = `until = clock_timestamp() + interval '${TURN_SECONDS} seconds'`;

const keep = write(async (sql) => await sql.run(`UPDATE turn SET ${KEEP}`));

const operations = {
  ...OPERATIONS,
  /** A real write shows whether the database takes one, however few bytes it has. */
  file: { probe: keep },
  turn: {
    keep,
    end: write(async (sql) => await sql.run("UPDATE turn SET until = '-infinity', owner = NULL")),
  },
} satisfies Operations;

new StoreWorker({
  operations,
  tasks: {},
  async openToWrite(setup: WriterSetup) {
    await makeTables(setup);
    const connection = new PostgresWriter(setup, setup.encryption?.key);
    try {
      return { connection, report: await prepare(connection, setup) };
    } catch (error) {
      // A connection that stays open would keep the thread.
      await connection.close();
      throw error;
    }
  },
  openToRead: (setup: ReaderSetup) => new PostgresReader(setup, setup.key),
}).start();

async function prepare(connection: PostgresWriter, setup: WriterSetup): Promise<OpenReport<ReaderSetup>> {
  const { url, statementTimeoutMs, encryption, nowMs, owner } = setup;
  // Before it has its turn, a server writes nothing: whoever has it counts what is written.
  const { dataId } = await connection.serve((work) => takeTurn(work, owner));
  const notices = await connection.write(riskySettings);
  await connection.write((work) => encryptSecrets(work, encryption));
  notices.push(...(await prepareData((step) => connection.write(step), nowMs, "the database")));
  const reader: ReaderSetup = { url, statementTimeoutMs, key: encryption?.key };
  return { operations: traitsOf(operations), dataId, notices, reader };
}

/** Says which settings of the database let it lose what it has acknowledged. */
async function riskySettings(work: Work): Promise<Notice[]> {
  const off = await work.rows<{ name: string }>(
    `SELECT name FROM list(?: name text) AS durable WHERE current_setting(name) = 'off'`,
    JSON.stringify(["fsync", "full_page_writes", "synchronous_commit"]),
  );
  return off.map(({ name }) => {
    const message = `The database's setting ${name} is off: when the database or its machine crashes, events that were acknowledged are lost.`;
    return { level: "warn", details: { setting: name }, message };
  });
}

/** @throws EvregError `conflict` while another server has its turn */
async function takeTurn(work: Work, owner: Owner): Promise<Turn & { readonly dataId: string }> {
  const turn = (await work.first<{ owner: string | null; isTaken: 0 | 1; seconds: number }>(
    `SELECT owner, until > clock_timestamp() AS isTaken,
        ceil(greatest(extract(epoch FROM until - clock_timestamp()), 0))::float8 AS seconds FROM turn`,
  ))!;
  if (turn.isTaken === 1) {
    const other = JSON.parse(turn.owner ?? "{}") as Partial<Owner & { readonly host: string }>;
    throw new EvregError(
      "conflict",
      `The database is in use by another server (process ${other.pid} on ${other.host}, since ${other.started_at}). Stop that one first, or act on it with --url; one that was killed is forgotten in ${turn.seconds} s.`,
      { ...other },
    );
  }
  return (await work.first(
    `UPDATE turn SET epoch = epoch + 1, owner = ?, ${KEEP} RETURNING epoch, writes, (SELECT id FROM data_identity) AS dataId`,
    JSON.stringify({ ...owner, host: hostname() }),
  ))!;
}
