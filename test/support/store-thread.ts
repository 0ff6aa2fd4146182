import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { Plugin } from "vitest/config";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SOURCE = "src/store/libsql/worker.ts";
/** As `HOST` names it. */
const NAMED = '"store/libsql/worker.ts"';
const HOST = "/src/runtime/process.ts";

/**
 * Has the store's thread start from one file, as in the single executable, made of the source as it is now. Hundreds
 * of tests open a store, and to load the sixty modules of its thread one by one takes a third of each opening.
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
      if (!code.includes(NAMED)) throw new Error(`The store's thread is no longer started from ${NAMED}`);
      return { code: code.replace(NAMED, JSON.stringify(pathToFileURL(file).href)), map: null };
    },
  };
}

async function bundleThread(): Promise<{ file: string; inputs: string[] }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [SOURCE],
    bundle: true,
    platform: "node",
    format: "esm",
    // Only the engine itself stays outside, as it is loaded by its path.
    external: ["libsql"],
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
    metafile: true,
    write: false,
    outdir: "out",
  });
  const text = outputFiles[0]!.text;
  const folder = join(ROOT, "node_modules/.cache/store-thread");
  const file = join(folder, `${createHash("sha256").update(text).digest("hex").slice(0, 16)}.mjs`);
  mkdirSync(folder, { recursive: true });
  // In one step: another run may start threads from it at this moment.
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, text);
  renameSync(unfinished, file);
  return { file, inputs: Object.keys(metafile.inputs) };
}
