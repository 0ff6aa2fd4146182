import { expect, test } from "vitest";
import type { Node } from "../../src/domain/operations.ts";
import { databaseFindings } from "../../src/service/doctor.ts";
import type { DatabaseFacts } from "../../src/store/store.ts";

const NOW_MS = Date.parse("2026-01-01T12:00:00.000Z");
const FACTS: DatabaseFacts = { version: "18.4", bytes: 2_000_000, risks: [], differing: [] };
const NODE: Node = {
  id: "a",
  host: "one",
  pid: 7,
  version: "1.0.0",
  status: "serving",
  started_at: "2026-01-01T00:00:00.000Z",
  seen_at: "2026-01-01T11:59:58.000Z",
  shards: 128,
  leaving: 0,
};

test.each([
  ["all is well", {}, [NODE], []],
  ["a setting lets it lose what it has", { risks: ["fsync"] }, [NODE], ["durability"]],
  ["settings differ", { differing: ["version"] }, [NODE], ["settings"]],
  ["no node runs", {}, [{ ...NODE, status: "visiting" } as const], ["nodes"]],
  ["a node ended lately", {}, [NODE, { ...NODE, status: "gone" } as const], ["nodes"]],
  [
    "a node ended long ago",
    {},
    [NODE, { ...NODE, status: "gone", seen_at: "2026-01-01T01:00:00.000Z" } as const],
    [],
  ],
])("where %s, the doctor says so", (_what, facts, nodes, expected) => {
  const findings = databaseFindings({ ...FACTS, ...facts }, nodes, NOW_MS);
  expect(findings.map(({ check }) => check)).toEqual(["database", "durability", "nodes", "settings"]);
  expect(findings.filter(({ status }) => status !== "ok").map(({ check }) => check)).toEqual(expected);
});
