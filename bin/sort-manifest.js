// Puts the commands of oclif.manifest.json in one order, those without a topic first: oclif writes them as the file system
// names their files, which is another order each time. `npm run manifest` ends with it.
import { readFileSync, writeFileSync } from "node:fs";

const FILE = new URL("../oclif.manifest.json", import.meta.url);

/** @param {string} id */
const depth = (id) => id.split(":").length;

const manifest = JSON.parse(readFileSync(FILE, "utf8"));
manifest.commands = Object.fromEntries(
  Object.entries(manifest.commands).toSorted(([a], [b]) => depth(a) - depth(b) || (a < b ? -1 : 1)),
);
writeFileSync(FILE, JSON.stringify(manifest, null, 2));
