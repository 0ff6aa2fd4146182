import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROGRAM } from "../support/program.ts";

/** Whether the machine has a program: the command must end well. */
export function isThere(command: string, ...words: string[]): boolean {
  return spawnSync(command, words, { stdio: "ignore" }).status === 0;
}

/** A PATH on which `evreg` is the build, as where it is installed; the link to it is made in `folder`. */
export function pathWithEvreg(folder: string): string {
  const bin = join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "evreg"), `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`);
  chmodSync(join(bin, "evreg"), 0o755);
  return `${bin}:${process.env["PATH"]}`;
}
