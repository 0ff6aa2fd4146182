import { createReadStream } from "node:fs";
import { restore } from "../../src/store/libsql/files/restore.ts";

// Puts a backup in the place of a folder's data, whatever is there.
const [folder = "", backup = ""] = process.argv.slice(2);
const content = createReadStream(backup) as AsyncIterable<Uint8Array>;
await restore({ folder, name: backup, content, encryption: undefined, force: true, nowMs: Date.now() });
