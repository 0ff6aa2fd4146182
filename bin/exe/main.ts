import "../unknown-account.js";
import { existsSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { setEnvironmentData } from "node:worker_threads";
import { ADDON_FOLDERS } from "./inside.ts";
import type { PackageFiles } from "../../src/cli/plugin.ts";

/** The program as the executable starts it. What it reads is all inside. */
export async function runExecutable(files: PackageFiles): Promise<void> {
  setEnvironmentData(ADDON_FOLDERS, addonFolders());
  const [{ main }, { pluginOf }, { COMMANDS }] = await Promise.all([
    import("../../src/cli/main.ts"),
    import("../../src/cli/plugin.ts"),
    import("../../src/commands/index.ts"),
  ]);
  const plugin = pluginOf(files, COMMANDS, dirname(process.execPath));
  await main(process.argv.slice(2), () => Promise.resolve(plugin));
}

/**
 * Where libSQL's native part may be put; the first that can hold a program is taken. One that was named is the only one.
 * A home that is not there is not made.
 */
function addonFolders(): string[] {
  const { env } = process;
  const named = env["EVREG_CACHE_DIR"];
  if (named) return [resolve(named)];
  const home = homeFolder();
  const caches = [
    // What systemd gives to a service; it may be several.
    env["CACHE_DIRECTORY"]?.split(":")[0],
    env["XDG_CACHE_HOME"],
    process.platform === "win32" ? env["LOCALAPPDATA"] : home && join(home, ".cache"),
  ];
  const shared = [env["XDG_RUNTIME_DIR"], tmpdir(), "/var/tmp", "/dev/shm"];
  const own = `evreg-${process.getuid?.() ?? "cache"}`;
  return [...inEach(caches, "evreg"), ...inEach(shared, own)];
}

function homeFolder(): string | undefined {
  const home = homedir();
  return isAbsolute(home) && existsSync(home) ? home : undefined;
}

function inEach(folders: readonly (string | undefined)[], name: string): string[] {
  return folders.flatMap((folder) => (folder && isAbsolute(folder) ? [join(folder, name)] : []));
}
