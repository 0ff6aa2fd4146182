import { expect, test } from "vitest";
import { pageLine } from "../../src/cli/resource-command.ts";

const EVENTS = { noun: "event", plural: "events" } as const;

test("the command for the next page repeats the typed flags and continues after the last record", () => {
  const flags = { action: "a.b", json: false, limit: 2, page: 3, after: 10, all: undefined, output: "table" };
  const next = "Next page: evreg events --action a.b --limit 2 --output table --after 8";
  expect(pageLine(EVENTS, flags, { shown: 2, last: 8 })).toBe(`2 events shown. ${next}`);
  expect(pageLine(EVENTS, flags, { shown: 2, total: 1_203, last: 8 })).toBe(
    `2 of 1,203 events shown. ${next}`,
  );
});

test("the command for the next page quotes values for a shell and contains no token", () => {
  const flags = { data: "/my data/it's", action: "$(rm)", token: "evreg_secret" };
  const line = pageLine(EVENTS, flags, { shown: 2, last: 8 });
  expect(line).toContain(String.raw`--data '/my data/it'\''s' --action '$(rm)' --token TOKEN --after 8`);
  expect(line).not.toContain("evreg_secret");
});
