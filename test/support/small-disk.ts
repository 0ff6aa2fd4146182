import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk {
  readonly path: string;
  remove(): void;
}

/** A tmpfs of its own; `undefined` where none can be mounted, which needs root and a kernel that lets it. */
export function mountSmallDisk(megabytes: number): SmallDisk | undefined {
  const path = mkdtempSync(join(tmpdir(), "evreg-full-"));
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  if (spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path]).status !== 0) {
    remove();
    return undefined;
  }
  return {
    path,
    remove() {
      // At once, though the engine holds a file that was closed until the garbage collector comes by.
      spawnSync("umount", ["-l", path]);
      remove();
    },
  };
}
