import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { Plugin } from "vitest/config";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SOURCE = "src/store/libsql/worker.ts";
/** As `HOST` names it, and what it starts threads with. */
const NAMED = '"store/libsql/worker.ts"';
const THREADS = '"node:worker_threads"';
const POOL = fileURLToPath(new URL("thread-pool.ts", import.meta.url));
const HOST = "/src/runtime/process.ts";

/**
 * Has the store's thread run from one file, as in the single executable, made of the source as it is now, on a thread of the
 * pool. Two thousand tests open a store; with a thread of its own, whose sixty modules are loaded one by one, each takes
 * four times as long.
 */
export function storeThreadInOneFile(): Plugin {
  return {
    name: "store-thread-in-one-file",
    // What vitest keeps of earlier runs goes by that one module, and would start the thread as it was then.
    configureVitest: ({ defineCacheKeyGenerator }) =>
      defineCacheKeyGenerator(({ id }) => (id.endsWith(HOST) ? false : undefined)),
    async transform(code, id) {
      if (!id.endsWith(HOST)) return undefined;
      const { file, inputs } = await bundleThread();
      for (const input of inputs) this.addWatchFile(join(ROOT, input));
      if (!code.includes(NAMED) || !code.includes(THREADS)) {
        throw new Error(`The store's thread is no longer started from ${NAMED} by ${THREADS}`);
      }
      const pooled = code.replace(THREADS, JSON.stringify(POOL));
      return { code: pooled.replace(NAMED, JSON.stringify(pathToFileURL(file).href)), map: null };
    },
  };
}

async function bundleThread(): Promise<{ file: string; inputs: string[] }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [SOURCE],
    bundle: true,
    platform: "node",
    format: "cjs",
    // Only the engine itself stays outside, as it is loaded by its path.
    external: ["libsql"],
    // What starts threads itself is in the bundle, and never runs there.
    logOverride: { "empty-import-meta": "silent" },
    metafile: true,
    write: false,
    outdir: "out",
  });
  const text = outputFiles[0]!.text;
  const folder = join(ROOT, "node_modules/.cache/store-thread");
  const file = join(folder, `${createHash("sha256").update(text).digest("hex").slice(0, 16)}.cjs`);
  mkdirSync(folder, { recursive: true });
  // In one step: another run may start threads from it at this moment.
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, text);
  renameSync(unfinished, file);
  return { file, inputs: Object.keys(metafile.inputs) };
}
