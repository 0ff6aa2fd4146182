import { join } from "node:path";
import { expect, test } from "vitest";
import type { AuditEntry } from "../../src/domain/audit.ts";
import { useServed } from "./served.ts";

const { folder, run, json } = useServed(
  ({ evreg }) => evreg.actions.create({ action: "a.b", application: "shop", schemata: {} }),
  { dev: false },
);

test("for a person each change is a line, as long back as is asked for", async () => {
  await run("actions update a.b --mode none");
  const { stdout } = await run("audit --since 1h");
  expect(stdout.split("\n")[0]).toMatch(/^ID +AT +BY +FROM +CHANGE +WHAT +MEMBERS$/);
  expect(stdout).toMatch(/ bootstrap +\S+ +action\.updated +\d+ a\.b +compatibility full → none$/m);
  const none = await run("audit --to 2020-01-01");
  expect(none).toEqual({ code: 0, stdout: "", stderr: "No change matches.\n" });
  const page = await run("audit --limit 1");
  expect(page.stderr).toMatch(/^1 change shown\. Next page: evreg audit --limit 1 --after \d+\n$/);
});

test("a command on the folder itself is local, and a restore is told by what it made", async () => {
  const backup = join(folder, "copy.db");
  expect((await run(["backup", backup])).code).toBe(0);
  const restored = join(folder, "restored");
  expect((await run(["restore", backup, "--data", restored])).code).toBe(0);
  await run(["tokens", "create", "later", "--scope", "read", "--data", restored]);
  const { data: all } = await json<readonly AuditEntry[]>(["audit", "--data", restored]);
  expect(all[0]).toMatchObject({ change: "token.created", name: "later", by: "local", token_id: null });
  expect(all[1]).toMatchObject({ change: "data.restored", record_id: null, by: "local" });
  expect(all[2]).toMatchObject({ change: "action.updated" });
});
