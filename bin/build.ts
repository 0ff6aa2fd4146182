import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type BuildOptions } from "esbuild";
import { CONSTANTS, httpByRequire, leanListhen } from "./bundling.ts";

// `npm run build` makes `dist`: the modules for users' own code as the compiler writes them, with their types, and the
// program in `dist/program`. The program is put together with its packages into few files: to load a thousand small ones
// takes most of the time of a command.

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const NEW = join(ROOT, "dist-new");
const DIST = join(ROOT, "dist");

rmSync(NEW, { recursive: true, force: true });
compileLibrary();
const bundled = [
  ...(await bundle(
    {
      main: "src/cli/main.ts",
      plugin: "src/cli/plugin.ts",
      commands: "src/commands/index.ts",
      "all-commands": "src/commands/all.ts",
    },
    { splitting: true },
  )),
  // A thread shares no code with the program, and starts sooner from one file. They find each other by these names: see
  // `runtime/process.ts`.
  ...(await bundle({
    "store-thread": "src/store/libsql/worker.ts",
    "postgres-thread": "src/store/postgres/worker.ts",
    "move-thread": "src/store/move/worker.ts",
    "validation-thread": "src/service/validation-worker.ts",
  })),
];
bundled.push(...(await bundlePage()));
writeFileSync(join(NEW, "program/LICENSES.txt"), licenses(bundled));
rmSync(DIST, { recursive: true, force: true });
renameSync(NEW, DIST);

/** `evreg/client`. */
function compileLibrary(): void {
  const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));
  const words = [join(typescript, "bin/tsc"), "-p", join(ROOT, "tsconfig.build.json"), "--outDir", NEW];
  execFileSync(process.execPath, words, { stdio: "inherit" });
}

/**
 * Answers the files that went in.
 * @param options with `splitting`, a CommonJS package that is imported when it is needed has its `default` export alone
 */
async function bundle(
  entryPoints: Readonly<Record<string, string>>,
  options: Pick<BuildOptions, "splitting"> = {},
): Promise<string[]> {
  const { metafile } = await build({
    ...options,
    absWorkingDir: ROOT,
    entryPoints,
    outdir: join(NEW, "program"),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node24",
    legalComments: "none",
    // It finds its native part by where it lies itself.
    external: ["libsql"],
    define: CONSTANTS,
    plugins: [leanListhen, httpByRequire],
    // Packages in CommonJS ask for Node's modules with it.
    banner: {
      js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);',
    },
    metafile: true,
    logLevel: "warning",
  });
  return Object.keys(metafile.inputs);
}

/**
 * The page at `/ui/`, as few files that need nothing from elsewhere. A name carries a hash of what is in the file, so that
 * browsers keep it. Answers the files that went in.
 */
async function bundlePage(): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: { page: "src/ui/main.tsx" },
    outdir: join(NEW, "ui"),
    entryNames: "[name]-[hash]",
    bundle: true,
    minify: true,
    platform: "browser",
    format: "esm",
    target: ["chrome123", "firefox121", "safari17.5"],
    tsconfig: "src/ui/tsconfig.json",
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  let page = readFileSync(join(ROOT, "src/ui/index.html"), "utf8");
  for (const path of Object.keys(metafile.outputs)) {
    const name = basename(path);
    page = page.replace(name.replace(/-\w+(\.\w+)$/, "$1"), name);
  }
  writeFileSync(join(NEW, "ui/index.html"), page);
  copyFileSync(join(ROOT, "src/ui/icon.svg"), join(NEW, "ui/icon.svg"));
  return Object.keys(metafile.inputs);
}

/** The licences of the packages that are in the program, as they ask for. */
function licenses(inputs: readonly string[]): string {
  const folders = inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []);
  const texts = [...new Set(folders)].toSorted().map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(ROOT, folder, "package.json"), "utf8"),
    ) as Record<string, string>;
    const file = readdirSync(join(ROOT, folder)).find((found) => /^licen[cs]e/i.test(found));
    const text = file === undefined ? "" : `\n\n${readFileSync(join(ROOT, folder, file), "utf8").trim()}`;
    return `${name} ${version} (${license})${text}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}
