import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build as bundle, type BuildOptions, type Plugin } from "esbuild";
import type { Interfaces } from "@oclif/core";
import { CONSTANTS, leanListhen } from "../bundling.ts";
import { ROOT } from "./packages.ts";

// Everything as three scripts: the program, the thread of its store and the one of long checks. The executable can load no
// other.

const COMMON: BuildOptions = {
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node24",
  // Names stay, so that a stack trace can be read.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: "none",
  write: false,
  define: CONSTANTS,
  logLevel: "warning",
  // Only asked for where the program lies in files.
  logOverride: { "empty-import-meta": "silent" },
};

/**
 * A worker's script would look for packages in the folder it is started in. All it needs is inside, so for it there are
 * Node's own modules and nothing else.
 */
const ONLY_BUILTINS = `var require=(name)=>{const found=process.getBuiltinModule(name);if(found===undefined)throw Object.assign(new Error("Cannot find module '"+name+"'"),{code:"MODULE_NOT_FOUND"});return found};`;

/** The program with all its commands. */
export function bundleProgram(): Promise<string> {
  return script(`import { runExecutable } from "./main.ts";\nvoid runExecutable(${packageFiles()});`, {
    plugins: [leanListhen],
  });
}

/** @param addonHash SHA-256 of libSQL's native part, in hex */
export function bundleStoreThread(addonHash: string): Promise<string> {
  return script(`import "../../src/store/libsql/worker.ts";`, {
    plugins: [addonFromInside(addonHash)],
    banner: { js: ONLY_BUILTINS },
  });
}

export function bundlePostgresThread(): Promise<string> {
  return script(`import "../../src/store/postgres/worker.ts";`, {
    // A part in C that the driver can do without.
    external: ["pg-native"],
    banner: { js: ONLY_BUILTINS },
  });
}

/** It has both engines. */
export function bundleMoveThread(addonHash: string): Promise<string> {
  return script(`import "../../src/store/move/worker.ts";`, {
    plugins: [addonFromInside(addonHash)],
    external: ["pg-native"],
    banner: { js: ONLY_BUILTINS },
  });
}

export function bundleValidationThread(): Promise<string> {
  return script(`import "../../src/service/validation-worker.ts";`, { banner: { js: ONLY_BUILTINS } });
}

async function script(contents: string, options: BuildOptions): Promise<string> {
  const { outputFiles } = await bundle({
    ...COMMON,
    ...options,
    write: false,
    stdin: { contents, loader: "ts", resolveDir: join(ROOT, "bin/exe") },
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error("esbuild made nothing");
  return file.text;
}

/** The package's own description and its manifest, as the text of a `PackageFiles`. */
function packageFiles(): string {
  const { name, version, description, oclif } = readJson<Interfaces.PJSON>("package.json");
  const manifest = readJson<Interfaces.Manifest>("oclif.manifest.json");
  return JSON.stringify({ pjson: { name, version, description, oclif }, manifest });
}

/** libSQL's package looks for its native part among the packages beside it; in the executable it is an asset. */
function addonFromInside(addonHash: string): Plugin {
  const look = /function requireNative\(\) \{[\s\S]*?\n\}\n/;
  const loader = JSON.stringify(join(ROOT, "bin/exe/addon.ts"));
  return {
    name: "addon-from-inside",
    setup(build) {
      build.onLoad({ filter: /[\\/]node_modules[\\/]libsql[\\/]index\.js$/ }, ({ path }) => {
        const text = readFileSync(path, "utf8");
        if (!look.test(text))
          throw new Error(`${path} does not look for its native part as it did; see ${loader}`);
        return {
          contents: text
            .replace(look, `const requireNative = () => require(${loader}).loadAddon("${addonHash}");\n`)
            .replace(/^const \{ load, currentTarget \}.*$/m, "")
            .replace(/^const \{ familySync, GLIBC, MUSL \}.*$/m, ""),
        };
      });
    },
  };
}

function readJson<T>(name: string): T {
  return JSON.parse(readFileSync(join(ROOT, name), "utf8")) as T;
}
