import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { systemdUnit, type UnitOptions } from "../../src/commands/systemd.ts";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
const { run } = commandLine(folder.path, {});
afterAll(() => folder.remove());

const PLAIN: UnitOptions = {
  commandWords: "service systemd",
  // Something that is there wherever systemd is.
  program: ["/bin/sh"],
  words: [],
  user: undefined,
  data: undefined,
  config: undefined,
  encryptionKey: undefined,
  hasLowPort: false,
  shutdownGraceMs: 10_000,
};

const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;

function analyze(unit: string, ...words: readonly string[]): { status: number | null; said: string } {
  const path = join(folder.path, "evreg.service");
  writeFileSync(path, unit);
  const { status, stdout, stderr } = spawnSync("systemd-analyze", [...words, path], { encoding: "utf8" });
  return { status, said: `${stdout}${stderr}` };
}

describe.skipIf(!hasAnalyze)("systemd's own check (skipped where there is no systemd-analyze)", () => {
  test.each<[string, Partial<UnitOptions>]>([
    ["as it is", {}],
    [
      "with everything",
      {
        words: ["--host", "0.0.0.0", "--port", "443"],
        hasLowPort: true,
        config: "/etc/evreg/100% my.yaml",
        encryptionKey: "/etc/evreg/key",
      },
    ],
    ["on a folder of a user", { user: "root", data: '/srv/a "quoted" $HOME 100%' }],
  ])("accepts the unit %s", (_, given) => {
    expect(analyze(systemdUnit({ ...PLAIN, ...given }), "verify", "--man=no")).toEqual({
      status: 0,
      said: "",
    });
  });

  test("finds few permissions left to the service", () => {
    const { said } = analyze(systemdUnit(PLAIN), "security", "--offline=yes", "--no-pager");
    const [, exposure] = /Overall exposure level for evreg\.service: ([\d.]+)/.exec(said) ?? [];
    expect(Number(exposure)).toBeGreaterThan(0);
    expect(Number(exposure)).toBeLessThan(2);
  });
});

test("the unit starts the program that printed it, and warns where the service could not read that", async () => {
  const outcome = await run(["service", "systemd", "--port", "80", "--program", "/home/ada/evreg"]);
  expect(outcome.code).toBe(0);
  expect(outcome.stdout).toContain("ExecStart=/home/ada/evreg serve --port 80\n");
  expect(outcome.stdout).toContain("AmbientCapabilities=CAP_NET_BIND_SERVICE\n");
  expect(outcome.stderr).toContain("--program");
  const own = await run(["service", "systemd"]);
  expect(own.stdout).toMatch(/^ExecStart="?\/.* serve$/m);
  expect(own.stdout).toMatch(/^DynamicUser=yes$/m);
});

test("the unit says how to print it again, and a folder that the service could not read is reported", async () => {
  const data = "/home/ada/data";
  const typed = relative(folder.path, data);
  const words = ["--port", "8080", "--user", "evreg", "--data", typed, "--encryption-key", "/etc/my key"];
  const outcome = await run(["service", "systemd", ...words]);
  expect(outcome.stdout).toContain(
    `#   evreg service systemd --port 8080 --user evreg --data ${data} --encryption-key '/etc/my key' > /etc/systemd/system/evreg.service\n`,
  );
  expect(outcome.stdout).toContain(` serve --port 8080 --data ${data}\n`);
  expect(outcome.stderr).toContain(`Warning: ${data} cannot be seen by the service`);
  const plain = await run(["service", "systemd", "--user", "evreg", "--data", "/srv/evreg"]);
  expect(plain.stderr).not.toContain("/srv/evreg");
});

test("a folder needs a user that can own it", async () => {
  const outcome = await run(["service", "systemd", "--data", "/srv/evreg"]);
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toContain("--data needs --user");
});
