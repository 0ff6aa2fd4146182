import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { systemdUnit } from "../../src/commands/systemd.ts";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
const { run } = commandLine(folder.path, {});
afterAll(() => folder.remove());

/** Something that is there wherever systemd is. */
const PROGRAM = ["/bin/sh"];

const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;

function analyze(unit: string, ...words: readonly string[]): { status: number | null; said: string } {
  const path = join(folder.path, "evreg.service");
  writeFileSync(path, unit);
  const { status, stdout, stderr } = spawnSync("systemd-analyze", [...words, path], { encoding: "utf8" });
  return { status, said: `${stdout}${stderr}` };
}

describe.skipIf(!hasAnalyze)("systemd's own check (skipped where there is no systemd-analyze)", () => {
  test.each([
    ["as it is", {}],
    [
      "with a configuration and a key",
      { config: "/etc/evreg/100% my.yaml", "encryption-key": "/etc/evreg/key" },
    ],
  ])("accepts the unit %s", (_, given) => {
    expect(analyze(systemdUnit(PROGRAM, given), "verify", "--man=no")).toEqual({ status: 0, said: "" });
  });

  test("finds few permissions left to the service", () => {
    const { said } = analyze(systemdUnit(PROGRAM, {}), "security", "--offline=yes", "--no-pager");
    const [, exposure] = /Overall exposure level for evreg\.service: ([\d.]+)/.exec(said) ?? [];
    expect(Number(exposure)).toBeGreaterThan(0);
    expect(Number(exposure)).toBeLessThan(2);
  });
});

test("the unit starts the program that printed it, and warns where the service could not read that", async () => {
  const words = [
    "--program",
    '/home/a "da"/evreg',
    "--config",
    "evreg.yaml",
    "--encryption-key",
    "/etc/my key",
  ];
  const outcome = await run(["service", "systemd", ...words]);
  expect(outcome.code).toBe(0);
  expect(outcome.stdout).toContain(
    String.raw`ExecStart="/home/a \"da\"/evreg" serve --config %d/config.yaml` + "\n",
  );
  expect(outcome.stdout).toContain(`LoadCredential=config.yaml:${join(folder.path, "evreg.yaml")}\n`);
  expect(outcome.stdout).toContain("LoadCredential=encryption-key:/etc/my key\n");
  expect(outcome.stderr).toContain("--program");
  const own = await run("service systemd");
  expect(own.stdout).toMatch(/^ExecStart="?\/.* serve$/m);
  expect(own.stdout).toMatch(/^DynamicUser=yes$/m);
});
