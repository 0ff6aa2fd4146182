import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { constants, gzipSync, zstdCompressSync } from "node:zlib";
import {
  bundleMoveThread,
  bundlePostgresThread,
  bundleProgram,
  bundleStoreThread,
  bundleValidationThread,
} from "./bundle.ts";
import { ADDON } from "./inside.ts";
import { HOST, MISSING, packageFolder, ROOT, type Target, TARGETS, versionIn } from "./packages.ts";

// `npm run build:exe`: the program, Node and libSQL's native part as one file. It is Node's "single executable
// application", put together by pkg out of the Node that the lock file names.

/** What stack traces call it. */
const PROGRAM = "evreg.cjs";

/** The part of pkg that takes a Node which is there; its command line would fetch one. */
type MakeExecutable = (
  entry: string,
  options: {
    targets: readonly object[];
    nodePath: string;
    /** Makes the blob with the Node that runs this instead of `nodePath`, which may be for another machine. */
    useLocalNode: true;
    /** Only for macOS, and only where `codesign` or `ldid` is there. */
    signature: boolean;
    seaConfig: object;
  },
) => Promise<void>;

const { values } = parseArgs({
  options: {
    target: { type: "string", default: HOST },
    /** Does not fail where there is no build for this machine. */
    "if-possible": { type: "boolean", default: false },
  },
});
const target = TARGETS[values.target];
if (target === undefined) {
  const reason = MISSING[values.target];
  process.stderr.write(
    `There is no executable for ${values.target}${reason === undefined ? "" : `: ${reason}`}. There are: ${Object.keys(TARGETS).join(", ")}.\n`,
  );
  process.exit(values["if-possible"] ? 0 : 2);
}
await buildExecutable(values.target, target);

async function buildExecutable(name: string, { platform, arch, node, addon }: Target): Promise<void> {
  const isNative = name === HOST;
  const folder = join(ROOT, "dist-exe");
  const file = `evreg${isNative ? "" : `-${name}`}${platform === "win" ? ".exe" : ""}`;
  const work = mkdtempSync(join(tmpdir(), "evreg-build-"));
  try {
    const nodeFolder = packageFolder(node.package, work);
    mustBeSameNode(nodeFolder, node.sameLayoutAs);
    const native = readFileSync(join(packageFolder(addon, work), "index.node"));
    const put = (path: string, content: string | Uint8Array): string => {
      const whole = join(work, path);
      writeFileSync(whole, content);
      return whole;
    };
    const [program, storeThread, postgresThread, moveThread, validationThread] = await Promise.all([
      bundleProgram(),
      bundleStoreThread(sha256(native)),
      bundlePostgresThread(),
      bundleMoveThread(sha256(native)),
      bundleValidationThread(),
    ]);
    const assets = {
      "store-thread.cjs": put("store-thread.cjs", storeThread),
      "postgres-thread.cjs": put("postgres-thread.cjs", postgresThread),
      "move-thread.cjs": put("move-thread.cjs", moveThread),
      "validation-thread.cjs": put("validation-thread.cjs", validationThread),
      ...pageAssets(put),
      [ADDON]: put(ADDON, zstdCompressSync(native, { params: { [constants.ZSTD_c_compressionLevel]: 9 } })),
    };
    const output = join(work, file);
    // pkg then works in a folder within this one, and the program has the same name wherever it is built.
    Object.assign(process.env, { TMPDIR: work, TEMP: work });
    const main = `../${PROGRAM}`;
    const make = createRequire(import.meta.url)("@yao-pkg/pkg/lib-es5/sea").default as MakeExecutable;
    await make(put(PROGRAM, program), {
      targets: [{ nodeRange: "node24", platform, arch, output }],
      nodePath: join(nodeFolder, node.file),
      useLocalNode: true,
      signature: platform === "macos",
      seaConfig: {
        main,
        assets,
        // Only the Node it is made for can read it.
        useCodeCache: isNative,
        // Left alone, V8 lets the heap for short-lived objects grow to 64 MiB under load, and to no gain.
        execArgv: ["--max-semi-space-size=8"],
        // Neither NODE_OPTIONS nor anything else of outside changes what runs.
        execArgvExtension: "none",
      },
    });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${file}.sha256`), `${sha256(readFileSync(output))}  ${file}\n`);
    place(output, join(folder, file));
    process.stdout.write(`dist-exe/${file}: ${(statSync(join(folder, file)).size / 1e6).toFixed(1)} MB\n`);
    if (platform === "macos" && process.platform !== "darwin") {
      process.stdout.write(
        `It must be signed on a Mac before it starts there: codesign --force --sign - ${file}\n`,
      );
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The files of the page, as `npm run build` makes them, packed as browsers take them; see `http/page.ts`. */
function pageAssets(put: (path: string, content: Uint8Array) => string): Record<string, string> {
  const folder = join(ROOT, "dist/ui");
  const assets = readdirSync(folder).map((name) => {
    const packed = gzipSync(readFileSync(join(folder, name)), { level: 9 });
    return [`ui/${name}`, put(`${name}.gz`, packed)] as const;
  });
  return Object.fromEntries(assets);
}

/** The layout of what is put inside changes between versions, so the Node that writes it must be the one that reads it. */
function mustBeSameNode(folder: string, sameLayoutAs?: string): void {
  const version = versionIn(folder);
  if ([version, sameLayoutAs].includes(process.versions.node)) return;
  throw new Error(
    `this runs on Node ${process.version}, the executable would have v${version}; use npm run build:exe`,
  );
}

/** In one step, as the one that is there may be running. */
function place(from: string, to: string): void {
  const beside = `${to}.new`;
  copyFileSync(from, beside);
  chmodSync(beside, 0o755);
  renameSync(beside, to);
}

function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
