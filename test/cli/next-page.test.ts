import { expect, test } from "vitest";
import { pageLine } from "../../src/cli/resource-command.ts";

const EVENTS = { noun: "event", plural: "events" } as const;

test("a page reports how many records are shown, and of how many where that is known", () => {
  expect(pageLine(EVENTS, {}, { shown: 2 })).toBe("2 events shown; no more behind.");
  expect(pageLine(EVENTS, {}, { shown: 2, total: 1_203 })).toBe("2 of 1,203 events shown; no more behind.");
  expect(pageLine(EVENTS, {}, { shown: 1, total: 1 })).toBe("1 of 1 event shown; no more behind.");
});

test("the command for the next page repeats the typed flags and continues after the last record", () => {
  const flags = { action: "a.b", json: false, limit: 2, page: 3, after: 10, all: undefined, output: "table" };
  expect(pageLine(EVENTS, flags, { shown: 2, next: 8 })).toBe(
    "2 events shown. Next page: evreg events --action a.b --limit 2 --output table --after 8",
  );
});

test("the command for the next page quotes values for a shell and contains no token", () => {
  const flags = { data: "/my data/it's", action: "$(rm)", token: "evreg_secret" };
  const line = pageLine(EVENTS, flags, { shown: 2, next: 8 });
  expect(line).toContain(String.raw`--data '/my data/it'\''s' --action '$(rm)' --token TOKEN --after 8`);
  expect(line).not.toContain("evreg_secret");
});
