import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { commandLine } from "../support/command-line.ts";
import { crashed, damageCommit, putFiles } from "../store/open-file.ts";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
const { run, json } = commandLine(folder.path, {});

afterAll(() => folder.remove());

test("a migration can be shown without being done", async () => {
  const file = join(folder.path, "evreg.db");
  const here = ["--data", folder.path];
  const { data: planned } = await json(["migrate", "--dry-run", ...here]);
  expect(planned).toMatchObject({ exists: false, current: 0, applied: [] });
  expect(existsSync(file)).toBe(false);
  const shown = await run(["migrate", "--dry-run", ...here]);
  expect(shown.stdout).toMatch(/^To do +24 /m);
  expect(shown.stdout).not.toContain("Done now");

  const done = await run(["migrate", ...here]);
  expect(done).toMatchObject({ code: 0, stderr: "" });
  expect(done.stdout).toMatch(/^To do +nothing$/m);
  expect(done.stdout).toMatch(/^Done now +24$/m);
  const { data: status } = await json<{ current: number; latest: number }>(["migrate", "--status", ...here]);
  expect(status).toMatchObject({ file, exists: true, pending: [] });
  expect(status.current).toBe(status.latest);
});

test("a missing folder has no format to show", async () => {
  const outcome = await run(["migrate", "--status", "--data", join(folder.path, "nowhere")]);
  expect(outcome).toMatchObject({ code: 3, stdout: "" });
  expect(outcome.stderr).toMatch(/^Error: There is no data folder .*nowhere\. /);
});

test("every command reports a damaged log, and it is given up only on request", async () => {
  const other = temporaryFolder();
  const here = ["--data", other.path];
  const files = await crashed(async (connection) => {
    for (let n = 0; n < 20; n += 1) {
      await connection.write((sql) =>
        sql.run(
          "INSERT INTO token (name, hash, scopes, created_ms) VALUES (?, ?, '[]', 1)",
          `t${n}`,
          `${n}`.padStart(64, "0"),
        ),
      );
    }
  });
  damageCommit(files.wal, 4);
  putFiles(other.path, files);
  for (const words of [["events"], ["migrate"], ["backup", join(other.path, "copy")]]) {
    const { code, stderr } = await run([...words, ...here]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("evreg.db-wal is damaged") });
  }
  const looked = await run(["doctor", ...here]);
  expect(looked).toMatchObject({ code: 1, stdout: expect.stringMatching(/problem +data +.*is damaged/) });
  const done = await run(["migrate", "--accept-loss", ...here]);
  expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining("Warning: The data go on without") });
  const { data: tokens } = await json<readonly unknown[]>(["tokens", ...here]);
  expect(tokens).toHaveLength(4);
  other.remove();
});
