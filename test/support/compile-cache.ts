import module from "node:module";
import { fileURLToPath } from "node:url";

// The store's thread starts for most tests, from source; with the stripped and compiled code kept it takes half the time.
module.enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url)));
