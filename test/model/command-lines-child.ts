import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Interfaces, Plugin } from "@oclif/core";
import { runCommandLine } from "../../src/cli/main.ts";

// Runs command lines one after the other, as `bin/dev.js` does one: to load the program takes most of the time of each.

const root = fileURLToPath(new URL("../..", import.meta.url));
const pjson = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Interfaces.PJSON;
pjson.oclif.commands = { strategy: "explicit", target: "./src/commands/all.ts" };
const plugin = new Plugin({ root, pjson, isRoot: true, ignoreManifest: true });
await plugin.load();
for (const words of JSON.parse(process.argv[2]!) as readonly string[][]) {
  const code = await runCommandLine(words, () => Promise.resolve(plugin));
  if (code !== 0) process.exit(code);
  process.stdout.write("\0");
}
process.exit();
