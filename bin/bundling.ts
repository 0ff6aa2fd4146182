import { execFileSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";
import type { Build } from "../src/runtime/build.ts";

// What both builds of the program leave out, ask for in another way, or put in.

const ROOT = fileURLToPath(new URL("..", import.meta.url)).replace(/[/\\]$/, "");
const HASH_CHARACTERS = 12;

/** See `src/runtime/build.ts`. */
export const CONSTANTS = { EVREG_BUILD: JSON.stringify(JSON.stringify(buildOf(ROOT) ?? null)) };

/** The commit of a checkout; `undefined` for a folder that is none, as one from a tarball. */
export function buildOf(folder: string): Build | undefined {
  const git = (...words: string[]): string =>
    execFileSync("git", ["-C", folder, ...words], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    // Not the checkout of somebody who has evreg among other files.
    if (realpathSync(git("rev-parse", "--show-toplevel")) !== realpathSync(folder)) return undefined;
    const [hash = "", seconds = ""] = git("log", "-1", "--format=%H %ct").split(" ");
    const isModified = git("status", "--porcelain", "--untracked-files=no") !== "";
    return {
      commit: hash.slice(0, HASH_CHARACTERS) + (isModified ? "-modified" : ""),
      date: new Date(Number(seconds) * 1_000).toISOString().replace(".000Z", "Z"),
    };
  } catch {
    return undefined;
  }
}

/**
 * What listhen loads and a server has no use for. It would make certificates with node-forge, of 600 KB, and https listens
 * without it here. Its log is quiet, and the whole of consola takes 20 ms to prepare for measuring text.
 */
export const leanListhen: Plugin = {
  name: "lean-listhen",
  setup(build) {
    build.onResolve({ filter: /^node-forge$/ }, ({ path }) => ({ path, namespace: "left-out" }));
    build.onLoad({ filter: /.*/, namespace: "left-out" }, () => ({ contents: "export default undefined;" }));
    build.onResolve({ filter: /^consola$/ }, ({ kind, importer, resolveDir }) =>
      build.resolve("consola/basic", { kind, importer, resolveDir }),
    );
  },
};

/**
 * `node:http` by `require`. An `import` reads each export of the module, and some of them make Node load an undici of its
 * own: a twelfth of the time that a server takes to start.
 */
export const httpByRequire: Plugin = {
  name: "http-by-require",
  setup(build) {
    build.onResolve({ filter: /^node:http$/ }, ({ path, kind }) =>
      kind === "import-statement" ? { path, namespace: "required" } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: "required" }, ({ path }) => ({
      contents: `module.exports = require("${path}");`,
    }));
  },
};
