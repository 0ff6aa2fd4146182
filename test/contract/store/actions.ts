import { expect, it } from "vitest";
import type { ActionSettings } from "../../../src/domain/action.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

export function actionSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("returns what was created, whatever its schema contains", async () => {
    const schemata = {
      type: "object",
      description: "NUL \u0000, half a pair \ud800, \u2028, 'quotes' \"double\" \\ and 🦉",
      properties: { "10": {}, "2": {}, __proto__2: {} },
    };
    const created = await on.catalog.createAction(
      { action: "a.b-c_1", application: "Größe 🦉", schemata },
      NOW,
    );
    expect(created).toEqual({
      rowid: expect.any(Number) as number,
      action: "a.b-c_1",
      application: "Größe 🦉",
      schemata,
      revision: 1,
      compatibility: "full",
      compatibility_against: "last",
      deprecated: false,
      retired: false,
      successor: null,
      timestamped: "2026-03-01T12:00:00.000Z",
    });
    const stored = {
      ...created,
      actionId: created.rowid,
      version: 1,
      deprecatedMs: null,
      isBuiltIn: false,
    };
    expect(await on.catalog.findAction("a.b-c_1")).toEqual(stored);
  });

  it("finds no action by a similar name, nor by one cut at a NUL", async () => {
    await on.action("user.created");
    expect(await on.catalog.findAction("user")).toBeUndefined();
    const cut = await on.catalog.findAction("user.created\u0000.v2").catch(() => undefined);
    expect(cut).toBeUndefined();
  });

  it("creates a revision only if the version has not changed meanwhile", async () => {
    const action = await on.action();
    const change = { action: action.action, schemata: { type: "object", required: ["id"] } };
    const revise = (expectedVersion: number, more: object = {}) =>
      on.catalog.reviseAction({ ...change, expectedVersion, ...more }, NOW + 5);
    const [revised, ...late] = await Promise.all([revise(1), revise(1), revise(1)]);
    expect(revised).toMatchObject({ revision: 2, schemata: change.schemata, application: "crm" });
    expect(late).toEqual(["stale", "stale"]);
    const moved = await revise(2, { application: "hr" });
    expect(moved).toMatchObject({ revision: 3, application: "hr", timestamped: action.timestamped });
    expect(await revise(1, { action: "none" })).toBeUndefined();
  });

  it("changes settings without a revision, and keeps the time of a deprecation", async () => {
    const { action, ...created } = await on.action();
    const change = (settings: Partial<ActionSettings>, version: number) =>
      on.catalog.reviseAction({ action, settings, expectedVersion: version }, NOW + version);
    const ended = { deprecated: true, successor: "user.created.v2" };
    expect(await change(ended, 1)).toEqual({ ...created, action, ...ended });
    await change({ compatibility: "none", compatibility_against: "all", retired: true }, 2);
    expect(await change({ deprecated: true }, 2)).toBe("stale");
    expect(await on.catalog.findAction(action)).toEqual({
      ...created,
      isBuiltIn: false,
      ...ended,
      action,
      compatibility: "none",
      compatibility_against: "all",
      retired: true,
      actionId: created.rowid,
      version: 3,
      deprecatedMs: NOW + 1,
    });
    await change({ deprecated: false, retired: false, successor: null }, 3);
    const again = { deprecated: false, retired: false, successor: null, deprecatedMs: null, revision: 1 };
    expect(await on.catalog.findAction(action)).toMatchObject(again);
    expect(await on.catalog.listRevisions({ action, limit: 10 })).toHaveLength(1);
  });
}
