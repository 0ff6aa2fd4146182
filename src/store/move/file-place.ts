import { createHash, randomUUID } from "node:crypto";
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import { fileTimestamp, toIso } from "../../runtime/clock.ts";
import { findServer } from "../../runtime/find-server.ts";
import { silentLogger } from "../../runtime/logger.ts";
import { removeOwner, writeOwner } from "../../runtime/owner-file.ts";
import { LARGE_CACHE, WriteConnection, withDatabase } from "../libsql/connection.ts";
import {
  arrivingFile,
  dataFileOf,
  hasDataAt,
  inUseError,
  isEvregs,
  lastMovedFile,
  move,
  movedFile,
  prepareFolder,
} from "../libsql/files/data-folder.ts";
import { dataIdentity, lastNumber, setLastNumber } from "../libsql/files/id-reservation.ts";
import { withoutLog } from "../libsql/files/open-file.ts";
import { createTables, FORM, markForm, mustBeAsMade, readForm } from "../libsql/files/schema.ts";
import type { SyncSql } from "../libsql/statements.ts";
import { EngineFailure } from "../sql/sql.ts";
import { keysOf, linesIn } from "./moved-tables.ts";
import {
  identify,
  type MoveEngine,
  mustBeBegun,
  type OpenSource,
  type OpenTarget,
  type SourceFacts,
} from "./pass.ts";

const engine: MoveEngine = {
  async checksum(sql, table, range) {
    // The database is asked first, as the engine keeps this thread until it has answered.
    await Promise.resolve();
    const lines = await sql.joined(
      `SELECT line AS bytes FROM (${linesIn(table, range)}) ORDER BY ${table.key.join(", ")}`,
      ...keysOf(range),
    );
    return createHash("sha256").update(lines).digest("hex");
  },
  lastNumber,
  async setLastNumber(sql, { name, numbers }, last) {
    // It goes on after the largest one by itself.
    if (numbers === "after last") await setLastNumber(sql, name, last);
  },
};

/** @param path a data folder, or a backup of one that a server has */
export async function fromPath<T>(path: string, act: (source: OpenSource) => Promise<T>): Promise<T> {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new EvregError("not_found", `There is no folder or file ${path}.`);
  return stats.isDirectory() ? await fromFolder(path, act) : await fromBackup(path, act);
}

async function fromFolder<T>(folder: string, act: (source: OpenSource) => Promise<T>): Promise<T> {
  if ((await findServer(folder)) !== undefined) {
    const message = `A server has the data folder ${folder}. Stop it; or move a backup first, so that it need only be stopped for what changes after that: \`evreg backup FILE\`, and then \`evreg move --from FILE\`.`;
    throw new EvregError("conflict", message, { folder });
  }
  const file = dataFileOf(folder);
  const isHere = hasDataAt(file);
  // It was moved away where a move was cut off at its very end.
  const kept = isHere ? undefined : lastMovedFile(folder);
  if (!isHere && kept === undefined) {
    throw new EvregError("not_found", `The data folder ${folder} holds no data.`, { folder });
  }
  const { pid } = process;
  const owner = { pid, command: "move", instance: randomUUID(), started_at: toIso(Date.now()) };
  try {
    return await withFile(kept ?? file, async (sql) => {
      writeOwner(folder, owner, silentLogger);
      const leave = async (): Promise<string> => {
        if (kept !== undefined) return kept;
        const moved = movedFile(folder, fileTimestamp(Date.now()));
        withoutLog(sql, file);
        move(file, moved);
        return moved;
      };
      return await act({ engine, sql, dataId: dataIdentity(sql), isAtRest: true, kept, leave });
    });
  } catch (error) {
    throw error instanceof EngineFailure && error.kind === "in_use" ? inUseError(folder) : error;
  } finally {
    removeOwner(folder, owner.instance);
  }
}

function fromBackup<T>(path: string, act: (source: OpenSource) => Promise<T>): Promise<T> {
  return withFile(path, (sql) => {
    return act({ engine, sql, dataId: dataIdentity(sql), isAtRest: false, leave: stays });
  });
}

/** No server uses a backup. */
function stays(): Promise<never> {
  return Promise.reject(new Error("a backup cannot be left"));
}

async function withFile<T>(path: string, act: (sql: SyncSql) => Promise<T>): Promise<T> {
  if (!isEvregs(path)) {
    throw new EvregError("invalid", `${path} is no data file or backup of evreg.`, { file: path });
  }
  return await withDatabase(path, async (sql) => {
    mustHaveForm(sql, path);
    sql.run(`PRAGMA ${LARGE_CACHE}`);
    return await act(sql);
  });
}

function mustHaveForm(sql: SyncSql, path: string): void {
  const form = readForm(sql);
  if (form !== FORM) {
    const message = `The data file ${path} has form ${form}, and this evreg moves form ${FORM} alone. \`evreg migrate\` brings the file of a data folder there.`;
    throw new EvregError("usage", message, { file: path, version: form, latest: FORM });
  }
  mustBeAsMade(sql, `The data file ${path}`, form);
}

/** Whether a file has no tables yet. */
function isNew(sql: SyncSql): boolean {
  return readForm(sql) === 0;
}

export async function toFolder(folder: string, source: SourceFacts): Promise<OpenTarget> {
  prepareFolder(folder);
  const path = arrivingFile(folder);
  mustBeBegun(existsSync(path), source, `the data folder ${folder}`);
  mustBeFree(folder);
  closeSync(openSync(path, "a", 0o600));
  const connection = WriteConnection.open(path, (sql) => {
    if (!isNew(sql)) mustHaveForm(sql, path);
  });
  connection.read.run(`PRAGMA ${LARGE_CACHE}`);
  // What rows refer to is there at the end, as it is in the source, and may be removed before them.
  connection.read.run("PRAGMA foreign_keys = OFF");
  try {
    await connection.write(async (sql) => {
      if (isNew(sql)) {
        createTables(sql);
        markForm(sql);
      }
      await identify(sql, source.dataId, `the data folder ${folder}`, `remove ${path}`);
    });
  } catch (error) {
    connection.close();
    throw error;
  }
  return {
    where: folder,
    engine,
    transaction: (work) => connection.write(work, "later"),
    arrive() {
      mustBeFree(folder);
      withoutLog(connection.read, path);
      move(path, dataFileOf(folder));
      return Promise.resolve();
    },
    close() {
      connection.close();
      return Promise.resolve();
    },
  };
}

/** @throws EvregError `conflict` for a folder that has data */
function mustBeFree(folder: string): void {
  if (!hasDataAt(dataFileOf(folder))) return;
  const message = `The data folder ${folder} has data already, which a move leaves alone. Name another with --to.`;
  throw new EvregError("conflict", message, { folder });
}
