import type { Plugin } from "esbuild";

// What both builds of the program leave out, or ask for in another way.

/** listhen makes certificates with it, and here https listens without listhen. It is 600 KB of a program of 6 MB. */
export const withoutForge: Plugin = {
  name: "without-forge",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node-forge$/ }, ({ path }) => ({ path, namespace: "left-out" }));
    onLoad({ filter: /.*/, namespace: "left-out" }, () => ({ contents: "export default undefined;" }));
  },
};

/**
 * `node:http` by `require`. An `import` reads each export of the module, and some of them make Node load an undici of its
 * own: a twelfth of the time that a server takes to start.
 */
export const httpByRequire: Plugin = {
  name: "http-by-require",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:http$/ }, ({ path, kind }) =>
      kind === "import-statement" ? { path, namespace: "required" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "required" }, ({ path }) => ({
      contents: `module.exports = require("${path}");`,
    }));
  },
};
