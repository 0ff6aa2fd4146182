import { createClient } from "@libsql/client/sqlite3";

// Another program with SQLite: runs the statements given and prints the last one's rows. With `--hold` it then prints
// `held` and keeps its connection, transaction included, until its stdin ends.
const [path = "", ...given] = process.argv.slice(2);
const hold = given[0] === "--hold";
const statements = hold ? given.slice(1) : given;
const client = createClient({ url: `file:${path}`, concurrency: 1 });
if (hold) {
  const transaction = await client.transaction("write");
  for (const statement of statements) await transaction.execute(statement);
  process.stdout.write("held\n");
  for await (const _ of process.stdin);
  await transaction.rollback();
  process.exit(0);
}
let rows: unknown = [];
for (const statement of statements) ({ rows } = await client.execute(statement));
process.stdout.write(`${JSON.stringify(rows)}\n`, () => process.exit(0));
