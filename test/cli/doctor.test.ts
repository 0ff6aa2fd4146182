import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startHarness } from "../http/harness.ts";
import { connect } from "../../src/client/client.ts";
import { diagnose, findingLines } from "../../src/commands/diagnostics.ts";
import { shellWord } from "../../src/domain/formats.ts";
import type { Finding } from "../../src/domain/operations.ts";
import { useFolder } from "../support/command-line.ts";
import { writeOlderFile } from "../support/older-file.ts";
import { runProgram } from "../support/program.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const { at, run, expectEach } = useFolder();
let harness: Harness;

beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

async function looked(target: string): Promise<{ code: number | null; of: (check: string) => Finding }> {
  const { code, stdout } = await run(`doctor --json ${target}`);
  const { data: findings } = JSON.parse(stdout) as { data: readonly Finding[] };
  return { code, of: (check) => findings.find((one) => one.check === check)! };
}

test("doctor checks a data folder, and reports damage as a problem", async () => {
  const missing = new RegExp(`^problem +reach .*${at("data")}[^]*\`evreg serve --data data\``, "m");
  await expectEach([
    ["doctor --data data", 1, missing],
    ["migrate --data data", 0],
  ]);
  const well = await looked("--data data");
  expect(well.code).toBe(0);
  for (const check of ["folder", "disk", "size", "handlers"]) {
    expect(well.of(check), check).toMatchObject({ status: "ok", remedy: null });
  }
  expect(well.of("server").status).toBe("warning");

  chmodSync(at("data"), 0o770);
  expect((await looked("--data data")).of("folder")).toMatchObject({
    status: "warning",
    remedy: `Run: chmod 700 ${at("data")}.`,
  });
  truncateSync(at("data/evreg.db"), 60_000);
  const damaged = await looked("--data data");
  expect(damaged.code).toBe(1);
  expect(damaged.of("reach")).toMatchObject({
    status: "problem",
    found: expect.stringMatching(/is damaged.*evreg restore/s),
  });
});

test.each([
  ["emptied", (file: string) => truncateSync(file)],
  ["missing", (file: string) => rmSync(file)],
  ["damaged", (file: string) => writeFileSync(file, "not a data file")],
])(
  "where the data file is %s, what serve, doctor and migrate suggest restores that folder from its newest backup",
  async (how, lose) => {
    const lost = at(`it's ${how}`);
    const backup = join(lost, "of today.db");
    await expectEach([
      [["migrate", "--data", lost], 0],
      [["backup", backup, "--data", lost], 0],
    ]);
    for (const ending of ["-wal", "-shm"]) rmSync(join(lost, `evreg.db${ending}`), { force: true });
    lose(join(lost, "evreg.db"));
    const suggested = `\`evreg restore ${shellWord(backup)} --force --data ${shellWord(lost)}\``;
    for (const command of ["serve", "doctor", "migrate"]) {
      const { code, stdout, stderr } = await run([command, "--data", lost]);
      expect(code).not.toBe(0);
      expect(stdout + stderr).toContain(suggested);
      expect(stdout + stderr).not.toContain("evreg serve");
    }
    // It has no tokens, as that of a server with --dev.
    const restored = /^Start it with: \S*evreg serve --dev /m;
    await expectEach([[["restore", backup, "--force", "--data", lost], 0, undefined, restored]]);
  },
);

const disk = mountSmallDisk(20);

test.skipIf(disk === undefined)(
  "a read-only disk is reported as such (skipped where none can be mounted)",
  async () => {
    const onDisk = `--data ${join(disk!.path, "data")}`;
    try {
      // In a process of its own: one that goes on may hold the file for a while, and the disk could not be changed.
      expect(await runProgram(`migrate ${onDisk}`, { cwd: at("") })).toMatchObject({ code: 0 });
      expect(spawnSync("mount", ["-o", "remount,ro", disk!.path]).status).toBe(0);
      const found = await looked(onDisk);
      expect(found.code).toBe(1);
      expect(found.of("reach")).toMatchObject({
        status: "problem",
        found: expect.stringMatching(/read-only file system|can only be read/),
      });
    } finally {
      disk!.remove();
    }
  },
);

const checks = (findings: readonly Finding[]): readonly string[] => findings.map(({ check }) => check);

test("doctor asks a server about itself, and compares its version", async () => {
  const evreg = connect({ url: harness.url, token: await harness.token("admin") });
  const found = await diagnose({ evreg, kind: "remote", location: harness.url }, "9.9.9");
  await evreg.close();
  const of = (check: string): Finding | undefined => found.find((one) => one.check === check);
  expect(of("versions")).toMatchObject({ status: "warning", found: expect.stringContaining("9.9.9") });
  expect(of("server")?.status).toBe("ok");
  expect(checks(found.slice(2))).toEqual(checks((await harness.owner.doctor()).data));
});

test("a refused token and an unreachable server are reported with what to do", async () => {
  for (const [target, remedy] of [
    [`--url ${harness.url} --token evreg_unknown`, "--token-file"],
    [`--url ${harness.url} --token ${await harness.token("read")}`, "scope admin"],
    ["--url http://127.0.0.1:1", "--url"],
  ] as const) {
    const { code, of } = await looked(target);
    expect(code).toBe(1);
    expect(of("reach")).toMatchObject({ status: "problem", remedy: expect.stringContaining(remedy) });
  }
});

test("a folder whose data cannot be opened as things are is a problem, and a wrong configuration a mistake", async () => {
  const env = { EVREG_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64") };
  mkdirSync(at("older"));
  writeOlderFile(at("older/evreg.db"), 21);
  writeFileSync(at("wrong.yaml"), "prot: 1\n");
  await expectEach([
    ["migrate --data sealed", 0, undefined, undefined, { env }],
    ["doctor --data sealed", 1, /^problem +reach [^]*EVREG_ENCRYPTION_KEY/m, ""],
    ["doctor --data older", 1, /^problem +reach [^]*evreg\s+migrate/m, ""],
    ["doctor --data wrong.yaml", 1, /^problem +reach [^]*is not a folder/m, ""],
    ["doctor --config wrong.yaml", 2, "", /prot/],
  ]);
});

test("sentences are wrapped and indented", () => {
  const room = { found: "There is hardly any room left.", remedy: "Make room." };
  expect(findingLines([{ check: "disk", status: "problem", ...room }], 40)).toBe(`\
problem  disk  There is hardly any room
               left.
               > Make room.
`);
});
