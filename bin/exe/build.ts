import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
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
import { constants, zstdCompressSync } from "node:zlib";
import { CHECK_THREAD, STORE_THREAD } from "../../src/runtime/executable.ts";
import { YOUNG_HEAP } from "../../src/runtime/server-heap.ts";
import { bundleCheckThread, bundleProgram, bundleStoreThread } from "./bundle.ts";
import { ADDON } from "./inside.ts";
import { packageFolder, ROOT, versionIn } from "./packages.ts";
import { HOST, type Target, TARGETS } from "./targets.ts";

// `npm run build:exe`: the program, Node and libSQL's native part as one file. It is Node's "single executable
// application", put together by pkg out of the Node that the lock file names.

/** The part of pkg that takes a Node which is there; its command line would fetch one. */
type MakeExecutable = (
  entry: string,
  options: {
    targets: readonly object[];
    nodePath: string;
    /** Makes the blob with the Node that runs this instead of `nodePath`, which may be for another machine. */
    useLocalNode: true;
    signature: false;
    seaConfig: object;
  },
) => Promise<void>;

const { values } = parseArgs({ options: { target: { type: "string", default: HOST } } });
const target = TARGETS[values.target];
if (target === undefined) {
  process.stderr.write(
    `There is no build for ${values.target}; there are: ${Object.keys(TARGETS).join(", ")}. One for macOS must be signed on a Mac.\n`,
  );
  process.exit(2);
}
await buildExecutable(values.target, target);

async function buildExecutable(name: string, { platform, arch, node, addon }: Target): Promise<void> {
  const isNative = name === HOST;
  const folder = join(ROOT, "dist-exe");
  const file = `evreg${isNative ? "" : `-${name}`}${platform === "win" ? ".exe" : ""}`;
  const work = mkdtempSync(join(tmpdir(), "evreg-build-"));
  try {
    const nodeFolder = packageFolder(node.package, work);
    mustBeSameNode(nodeFolder);
    const native = readFileSync(join(packageFolder(addon, work), "index.node"));
    const put = (path: string, content: string | Uint8Array): string => {
      const whole = join(work, path);
      writeFileSync(whole, content);
      return whole;
    };
    const [program, storeThread, checkThread] = await Promise.all([
      bundleProgram(),
      bundleStoreThread(sha256(native)),
      bundleCheckThread(),
    ]);
    const assets = {
      [STORE_THREAD]: put(STORE_THREAD, storeThread),
      [CHECK_THREAD]: put(CHECK_THREAD, checkThread),
      [ADDON]: put(ADDON, zstdCompressSync(native, { params: { [constants.ZSTD_c_compressionLevel]: 9 } })),
    };
    const output = join(work, file);
    const make = createRequire(import.meta.url)("@yao-pkg/pkg/lib-es5/sea").default as MakeExecutable;
    await make(put("evreg.cjs", program), {
      targets: [{ nodeRange: "node24", platform, arch, output }],
      nodePath: join(nodeFolder, node.file),
      useLocalNode: true,
      signature: false,
      seaConfig: {
        assets,
        // Only the Node it is made for can read it.
        useCodeCache: isNative,
        execArgv: [YOUNG_HEAP],
        // Neither NODE_OPTIONS nor anything else of outside changes what runs.
        execArgvExtension: "none",
      },
    });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${file}.sha256`), `${sha256(readFileSync(output))}  ${file}\n`);
    place(output, join(folder, file));
    process.stdout.write(`dist-exe/${file}: ${(statSync(join(folder, file)).size / 1e6).toFixed(1)} MB\n`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The layout of what is put inside changes between versions, so the Node that writes it must be the one that reads it. */
function mustBeSameNode(folder: string): void {
  const version = `v${versionIn(folder)}`;
  if (version === process.version) return;
  throw new Error(
    `this runs on Node ${process.version}, the executable would have ${version}; use npm run build:exe`,
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
