import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { testOwner } from "./owner.ts";

// A process that owns a data folder until its stdin ends, and prints `open`, or why it cannot.
const [folder = "", command] = process.argv.slice(2);
const store = await openLibsqlStore({ folder, owner: testOwner(command), logger: silentLogger }).catch(
  ({ code, message }: { code: string; message: string }) => {
    process.stdout.write(`${JSON.stringify({ code, message })}\n`);
    process.exit(1);
  },
);
process.stdout.write("open\n");
for await (const _ of process.stdin);
await store.close();
process.exit(0);
