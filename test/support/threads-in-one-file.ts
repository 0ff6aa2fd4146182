import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { Plugin } from "vitest/config";
import { keptScript } from "./thread-script.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The threads' scripts, as `HOST` names them below `src`. */
const SCRIPTS = [
  "store/libsql/worker.ts",
  "store/postgres/worker.ts",
  "store/move/worker.ts",
  "service/validation-worker.ts",
];
/** What `HOST` starts threads with. */
const THREADS = '"node:worker_threads"';
const POOL = fileURLToPath(new URL("thread-pool.ts", import.meta.url));
const HOST = "/src/runtime/process.ts";

/**
 * Has each thread run from one file, as in the single executable, made of the source as it is now, on a thread of the pool.
 * Two thousand tests open a store; with threads of its own, whose sixty modules are loaded one by one, each takes five times as
 * long.
 */
export function threadsInOneFile(): Plugin {
  return {
    name: "threads-in-one-file",
    // What vitest keeps of earlier runs goes by that one module, and would start the thread as it was then.
    configureVitest: ({ defineCacheKeyGenerator }) =>
      defineCacheKeyGenerator(({ id }) => (id.endsWith(HOST) ? false : undefined)),
    async transform(code, id) {
      if (!id.endsWith(HOST)) return undefined;
      let pooled = replaced(code, THREADS, POOL);
      for (const script of SCRIPTS) {
        const { file, inputs } = await bundle(join("src", script));
        for (const input of inputs) this.addWatchFile(join(ROOT, input));
        pooled = replaced(pooled, JSON.stringify(script), pathToFileURL(file).href);
      }
      return { code: pooled, map: null };
    },
  };
}

function replaced(code: string, text: string, by: string): string {
  if (!code.includes(text)) throw new Error(`${HOST} no longer starts threads with ${text}`);
  return code.replace(text, JSON.stringify(by));
}

async function bundle(source: string): Promise<{ file: string; inputs: string[] }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [source],
    bundle: true,
    platform: "node",
    format: "cjs",
    // Only the engine itself stays outside, as it is loaded by its path.
    external: ["libsql", "pg"],
    // What starts threads itself is in the bundle, and never runs there.
    logOverride: { "empty-import-meta": "silent" },
    metafile: true,
    write: false,
    outdir: "out",
  });
  return { file: keptScript(outputFiles[0]!.text), inputs: Object.keys(metafile.inputs) };
}
