import { Connection } from "../../src/store/libsql/connection.ts";
import { admitFile, migrateFile } from "../../src/store/libsql/migrate-file.ts";

/** A connection to a data file of today's form, made where there is none, with nothing around it. */
export function openFile(file: string): Connection {
  const connection = Connection.open(file, (sql) => admitFile(sql, file));
  migrateFile(connection, file);
  return connection;
}
