import type { Plugin } from "esbuild";

// What both builds of the program leave out, or ask for in another way.

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
