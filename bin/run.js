#!/usr/bin/env node
import "./node-guard.js";
import "./unknown-account.js";
import { chmodSync, mkdirSync, statSync } from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

// Node's default place for compiled code is a fixed name in the shared /tmp, where another user could have put some first.
// Whoever can write to the place decides what runs here: so it is this user's, and nobody else enters it, whatever the umask.
try {
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  const own = join(caches, "evreg", "compiled");
  if (process.env.NODE_COMPILE_CACHE) module.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  else {
    mkdirSync(own, { recursive: true, mode: 0o700 });
    if (process.getuid === undefined || statSync(own).uid === process.getuid()) {
      chmodSync(own, 0o700);
      module.enableCompileCache(own);
    }
  }
} catch {
  // Everything works, and starts a little slower.
}

const [{ main }, { installedPlugin }, { COMMANDS }] = await Promise.all([
  import("../dist/program/main.js"),
  import("../dist/program/plugin.js"),
  import("../dist/program/commands.js"),
]);
const root = fileURLToPath(new URL("..", import.meta.url));
await main(process.argv.slice(2), () => installedPlugin(root, COMMANDS));
