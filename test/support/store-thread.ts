import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { Plugin } from "vitest/config";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SOURCE = "src/store/libsql/worker.ts";
const HOST = "/src/store/libsql/thread/worker-client.ts";

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
      const { file, inputs } = await bundleThread(SOURCE);
      for (const input of inputs) this.addWatchFile(join(ROOT, input));
      return { code: startingFrom(file, code, '"../worker.ts"'), map: null };
    },
  };
}

/** The code that starts the thread, with the file in place of the module that it names. */
export function startingFrom(file: string, code: string, named: string): string {
  if (!code.includes(named)) throw new Error(`The store's thread is no longer started from ${named}`);
  return code.replace(named, JSON.stringify(pathToFileURL(file).href));
}

/** @param entry of the thread, below the checkout */
export async function bundleThread(entry: string): Promise<{ file: string; inputs: string[] }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
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
