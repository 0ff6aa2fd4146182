import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());

const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;
const UNIT = readFileSync(new URL("../../examples/evreg.service", import.meta.url), "utf8");

function analyze(unit: string, ...words: readonly string[]): { status: number | null; said: string } {
  const path = join(folder.path, "evreg.service");
  // What it starts must be there.
  writeFileSync(path, unit.replace("/usr/local/bin/evreg", "/bin/sh"));
  const { status, stdout, stderr } = spawnSync("systemd-analyze", [...words, path], { encoding: "utf8" });
  return { status, said: `${stdout}${stderr}` };
}

test.skipIf(!hasAnalyze)(
  "systemd takes the unit, with its credentials too, and finds few permissions left",
  () => {
    for (const unit of [UNIT, UNIT.replaceAll(/^#(?=LoadCredential|Environment)/gm, "")]) {
      expect(analyze(unit, "verify", "--man=no")).toEqual({ status: 0, said: "" });
    }
    const { said } = analyze(UNIT, "security", "--offline=yes", "--no-pager");
    const [, exposure] = /Overall exposure level for evreg\.service: ([\d.]+)/.exec(said) ?? [];
    expect(Number(exposure)).toBeGreaterThan(0);
    expect(Number(exposure)).toBeLessThan(2);
  },
);
