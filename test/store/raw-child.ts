import { createClient } from "@libsql/client/sqlite3";

// Another program with SQLite: runs the statements. With `--hold` it does so in a transaction, prints `held` and keeps that
// until its stdin ends.
const [path = "", ...words] = process.argv.slice(2);
const client = createClient({ url: `file:${path}`, concurrency: 1 });
if (words[0] === "--hold") {
  const transaction = await client.transaction("write");
  for (const statement of words.slice(1)) await transaction.execute(statement);
  process.stdout.write("held\n");
  for await (const _ of process.stdin);
  await transaction.rollback();
} else {
  for (const statement of words) await client.execute(statement);
}
process.exit(0);
