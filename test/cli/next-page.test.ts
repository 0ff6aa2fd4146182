import { expect, test } from "vitest";
import { pageLine } from "../../src/cli/resource-command.ts";

const records = [{ rowid: 9 }, { rowid: 8 }];
const page = { command: "events", flags: {}, nouns: ["event", "events"] as const, records };

test("a page reports how many records are shown, and of how many where that is known", () => {
  expect(pageLine(page, undefined)).toBe("2 events shown; no more behind.");
  expect(pageLine({ ...page, total: 1_203 }, undefined)).toBe("2 of 1,203 events shown; no more behind.");
  expect(pageLine({ ...page, records: [{ rowid: 1 }], total: 1 }, undefined)).toBe(
    "1 of 1 event shown; no more behind.",
  );
});

test("the command for the next page repeats the typed flags and continues after the last record", () => {
  const flags = { action: "a.b", json: false, limit: 2, page: 3, after: 10, all: undefined, output: "table" };
  expect(pageLine({ ...page, flags }, 8)).toBe(
    "2 events shown. Next page: evreg events --action a.b --limit 2 --output table --after 8",
  );
});

test("the command for the next page quotes values for a shell and contains no token", () => {
  const flags = { data: "/my data/it's", action: "$(rm)", token: "evreg_secret" };
  const line = pageLine({ ...page, flags }, 8);
  expect(line).toContain(String.raw`--data '/my data/it'\''s' --action '$(rm)' --token TOKEN --after 8`);
  expect(line).not.toContain("evreg_secret");
});
