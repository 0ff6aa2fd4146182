import { expect, test } from "vitest";
import { pageLine } from "../../src/cli/resource-command.ts";

const records = [{ rowid: 9 }, { rowid: 8 }];
const page = { command: "events", flags: {}, nouns: ["event", "events"] as const, records };

test("it tells how many are shown, of how many where that is known", () => {
  expect(pageLine(page, undefined)).toBe("2 events shown; no more behind.");
  expect(pageLine({ ...page, total: 1_203 }, undefined)).toBe("2 of 1,203 events shown; no more behind.");
  expect(pageLine({ ...page, records: [{ rowid: 1 }], total: 1 }, undefined)).toBe(
    "1 of 1 event shown; no more behind.",
  );
});

test("the next page's command has the flags that were typed, and goes on behind the last record", () => {
  const flags = { action: "a.b", json: false, limit: 2, page: 3, after: 10, all: undefined, output: "table" };
  expect(pageLine({ ...page, flags }, 8)).toBe(
    "2 events shown. Next page: evreg events --action a.b --limit 2 --output table --after 8",
  );
});

test("values are quoted for a shell, and a token is not shown", () => {
  const flags = { data: "/my data/it's", action: "$(rm)", token: "evreg_secret" };
  const line = pageLine({ ...page, flags }, 8);
  expect(line).toContain(String.raw`--data '/my data/it'\''s' --action '$(rm)' --token TOKEN --after 8`);
  expect(line).not.toContain("evreg_secret");
});
