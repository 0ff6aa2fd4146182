import { expect, it } from "vitest";
import { SERVICE_EVENT_NAMES } from "../../../src/domain/service-events.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

export function actionSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("answers what was created, whatever its schema holds", async () => {
    const schemata = {
      type: "object",
      description: "NUL \u0000, half a pair \ud800, \u2028, 'quotes' \"double\" \\ and 🦉",
      properties: { "10": {}, "2": {}, __proto__2: {} },
    };
    const created = await on.store.createAction(
      { action: "a.b-c_1", application: "Größe 🦉", schemata },
      NOW,
    );
    expect(created).toEqual({
      rowid: expect.any(Number) as number,
      action: "a.b-c_1",
      application: "Größe 🦉",
      schemata,
      revision: 1,
      timestamped: "2026-03-01T12:00:00.000Z",
    });
    expect(await on.store.findAction("a.b-c_1")).toEqual({
      ...created,
      actionId: created.rowid,
      isBuiltIn: false,
    });
  });

  it("refuses a name that is taken, and stays usable", async () => {
    await on.action("user.created", "crm");
    await expect(on.action("user.created", "other")).rejects.toMatchObject({
      name: "EvregError",
      code: "conflict",
      message: expect.stringContaining("crm"),
      details: { field: "action", value: "user.created" },
    });
    expect((await on.store.findAction("user.created"))?.application).toBe("crm");
  });

  it("lists by name, of one application or of those a token may see", async () => {
    await on.action("b.two", "crm");
    await on.action("a.one", "shop");
    await on.action("c.three", "crm");
    const names = async (query: { application?: string; applications?: readonly string[] }) =>
      (await on.store.listActions(query)).map(({ action }) => action);
    expect(await names({})).toEqual(["a.one", "b.two", "c.three", ...SERVICE_EVENT_NAMES.toSorted()]);
    expect(await names({ application: "crm" })).toEqual(["b.two", "c.three"]);
    expect(await names({ applications: ["shop", "none"] })).toEqual(["a.one"]);
    expect(await names({ applications: [] })).toEqual([]);
    expect(await names({ application: "crm", applications: ["shop"] })).toEqual([]);
  });

  it("finds no action by another name, nor by one cut at a NUL", async () => {
    await on.action("user.created");
    expect(await on.store.findAction("user")).toBeUndefined();
    const cut = await on.store.findAction("user.created\u0000.v2").catch(() => undefined);
    expect(cut).toBeUndefined();
  });

  it("revises only on the revision the change was based on", async () => {
    const action = await on.action();
    const change = { action: action.action, schemata: { type: "object", required: ["id"] } };
    const revised = await on.store.reviseAction({ ...change, basedOnRevision: 1 }, NOW + 5);
    expect(revised).toMatchObject({ revision: 2, schemata: change.schemata, application: "crm" });
    expect(await on.store.reviseAction({ ...change, basedOnRevision: 1 }, NOW + 6)).toBe("stale");
    const moved = await on.store.reviseAction({ ...change, basedOnRevision: 2, application: "hr" }, NOW + 7);
    expect(moved).toMatchObject({ revision: 3, application: "hr", timestamped: action.timestamped });
    expect(
      await on.store.reviseAction({ ...change, action: "none", basedOnRevision: 1 }, NOW),
    ).toBeUndefined();
  });

  it("lets one of several revisions at the same moment through", async () => {
    const action = await on.action();
    const change = { action: action.action, schemata: {}, basedOnRevision: 1 };
    const answers = await Promise.all([1, 2, 3, 4].map(() => on.store.reviseAction(change, NOW)));
    expect(answers.filter((answer) => answer === "stale")).toHaveLength(3);
  });
}
