import { existsSync, mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { crashed, damageCommit, putFiles } from "../store/open-file.ts";
import { useFolder } from "../support/command-line.ts";

const { at, json, expectEach } = useFolder();

test("a migration can be shown without being done, and a missing folder has no format to show", async () => {
  const here = "--data made";
  const { data: planned } = await json(`migrate --dry-run ${here}`);
  expect(planned).toMatchObject({ exists: false, current: 0 });
  expect(existsSync(at("made/evreg.db"))).toBe(false);
  await expectEach([
    [`migrate --dry-run ${here}`, 0, /^Form +0, still to be brought to 24$/m],
    [`migrate ${here}`, 0, /^Form +24, the latest$/m, ""],
    ["migrate --status --data nowhere", 3, "", /^Error: There is no data folder .*nowhere\. /],
  ]);
  const { data: status } = await json<{ current: number; latest: number }>(`migrate --status ${here}`);
  expect(status).toMatchObject({ file: at("made/evreg.db"), exists: true });
  expect(status.current).toBe(status.latest);
});

test("every command reports a damaged log, and it is given up only on request", async () => {
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
  mkdirSync(at("damaged"), { mode: 0o700 });
  putFiles(at("damaged"), files);
  const here = "--data damaged";
  const damaged = /evreg\.db-wal is damaged/;
  await expectEach([
    [`events ${here}`, 1, undefined, damaged],
    [`migrate ${here}`, 1, undefined, damaged],
    [`backup copy ${here}`, 1, undefined, damaged],
    [`doctor ${here}`, 1, /problem +reach +.*is damaged/],
    [`migrate --accept-loss ${here}`, 0, undefined, /Warning: The data go on without/],
  ]);
  const { data: tokens } = await json<readonly unknown[]>(`tokens ${here}`);
  expect(tokens).toHaveLength(4);
});
