import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const FOLDER = fileURLToPath(new URL("../../node_modules/.cache/threads", import.meta.url));
/** What makes `require` in a built script. The pool gives one to each run. */
const REQUIRE = /^.*requireFrom.*\n/;

/** Keeps the script of a thread, under a name that goes by what is in it, and answers its file. */
export function keptScript(code: string): string {
  const file = join(FOLDER, `${createHash("sha256").update(code).digest("hex").slice(0, 16)}.cjs`);
  if (existsSync(file)) return file;
  mkdirSync(FOLDER, { recursive: true });
  // In one step: another run may start threads from it at this moment.
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, code);
  renameSync(unfinished, file);
  return file;
}

/** Makes a script that `thread-pool.ts` can run again and again of one that the build has made. */
export async function scriptForPool(built: URL): Promise<URL> {
  const { transform } = await import("esbuild");
  const { code } = await transform(readFileSync(built, "utf8").replace(REQUIRE, ""), { format: "cjs" });
  return pathToFileURL(keptScript(code));
}
