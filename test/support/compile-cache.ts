import module from "node:module";
import { fileURLToPath } from "node:url";

// Threads and processes that tests start from source load in half the time with the stripped and compiled code kept.
const folder = fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url));
module.enableCompileCache(folder);
process.env["NODE_COMPILE_CACHE"] = folder;
