import { describe, expect, it } from "vitest";
import { SERVICE_EVENT_NAMES } from "../../src/domain/service-events.ts";
import type { Schemata } from "../../src/domain/action.ts";
import type { Scope } from "../../src/domain/token.ts";
import {
  ANY_OBJECT,
  freshName,
  newAction,
  newEvent,
  publish,
  refusal,
  USER_SCHEMA,
  useSharedEvreg,
} from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

/** Members with long texts about them, as large schemas mostly have. */
const MANY_DESCRIBED = Object.fromEntries(
  Array.from({ length: 40 }, (_, index) => [
    `p${index}`,
    { type: "string", description: "What it says. ".repeat(400) },
  ]),
);

/** As large as a schema may be. */
function largeSchema(extra: object): Schemata {
  const schema = { title: "", type: "object", properties: { ...MANY_DESCRIBED, ...extra } };
  return { ...schema, title: "x".repeat(256 * 1024 - JSON.stringify(schema).length) };
}

export function actionsContract(open: OpenEvreg): void {
  describe("actions", () => {
    const under = useSharedEvreg(open);

    it("are created with their first revision", async () => {
      const { data, meta } = await under.evreg.actions.create(newAction());
      expect(data).toEqual({
        rowid: expect.any(Number) as number,
        action: "user.created",
        application: "crm",
        schemata: USER_SCHEMA,
        revision: 1,
        compatibility: "full",
        compatibility_against: "last",
        deprecated: false,
        retired: false,
        successor: null,
        timestamped: "2026-01-01T00:00:00.000Z",
      });
      expect(meta).toEqual({ warnings: [] });
      expect(await under.evreg.actions.get("user.created")).toEqual({ data });
    });

    it("can be stored, listed, changed and compared with schemas of 256 KiB", async () => {
      const { actions } = under.evreg;
      const application = freshName();
      // More than are read at once.
      const names = [freshName(), freshName(), freshName(), freshName()].toSorted();
      for (const action of names) {
        await actions.create(newAction({ action, application, schemata: largeSchema({}) }));
      }
      const { data } = await actions.list({ application });
      expect(data.map(({ action }) => action)).toEqual(names);
      expect(data.every((one) => JSON.stringify(one.schemata).length === 256 * 1024)).toBe(true);
      const action = names[0]!;
      await publish(under.evreg, newEvent({ p7: "text" }, action));
      await refusal(under.evreg.events.publish(newEvent({ p7: 7 }, action)), "invalid");
      const next = largeSchema({ added: { type: "integer" } });
      expect((await actions.update(action, { schemata: next })).data).toMatchObject({
        revision: 2,
        schemata: next,
      });
      const broken = await refusal(
        actions.update(action, { schemata: largeSchema({ p7: false }) }),
        "conflict",
      );
      expect(broken.details["changes"]).not.toEqual([]);
    });

    it("have names of up to 128 characters in dotted segments", async () => {
      for (const action of ["a", "A_b-9.c.v2", "x".repeat(128), "constructor", "__proto__"]) {
        expect((await under.evreg.actions.create(newAction({ action }))).data.action).toBe(action);
        expect((await under.evreg.actions.get(action)).data.action).toBe(action);
      }
    });

    it("have an application whose name is trimmed", async () => {
      const { data } = await under.evreg.actions.create(
        newAction({ action: freshName(), application: "  Sales & Söhne " }),
      );
      expect(data.application).toBe("Sales & Söhne");
    });

    it("come with warnings of what is legal but checks nothing", async () => {
      const schemata = {
        ...ANY_OBJECT,
        properties: { email: { type: "string", fromat: "email" }, when: { format: "yesterday" } },
      };
      const { data, meta } = await under.evreg.actions.create(newAction({ action: freshName(), schemata }));
      expect(data.schemata).toEqual(schemata);
      expect(meta?.warnings.map(({ pointer }) => pointer).toSorted()).toEqual([
        expect.stringMatching(/^\/properties\/email/),
        expect.stringMatching(/^\/properties\/when/),
      ]);
    });

    it("come with warnings of a type that no payload has", async () => {
      for (const type of ["string", ["array", "null"]]) {
        const action = `of.${[type].flat().join(".")}`;
        const { meta } = await under.evreg.actions.create(newAction({ action, schemata: { type } }));
        expect(meta?.warnings).toEqual([
          { pointer: "/type", message: expect.stringContaining(JSON.stringify(type)) },
        ]);
      }
      const withObject = newAction({ action: freshName(), schemata: { type: ["object", "null"] } });
      const { data, meta } = await under.evreg.actions.create(withObject);
      expect(meta).toEqual({ warnings: [] });
      const never = { schemata: { type: "null" } };
      const updated = await under.evreg.actions.update(data.action, never, { compatibility: "none" });
      expect(updated.meta?.warnings.map(({ pointer }) => pointer)).toEqual(["/type"]);
    });
  });

  describe("listing actions", () => {
    const under = useSharedEvreg(open);

    it("sorts by name, all or of one application", async () => {
      const { actions } = under.evreg;
      await actions.create(newAction({ action: "user.deleted" }));
      await actions.create(newAction({ action: "order.placed", application: "shop" }));
      await actions.create(newAction({ action: "Zebra" }));
      const names = async (query?: { application: string }): Promise<string[]> =>
        (await actions.list(query)).data.map(({ action }) => action);
      expect(await names()).toEqual([
        "Zebra",
        ...SERVICE_EVENT_NAMES.toSorted(),
        "order.placed",
        "user.deleted",
      ]);
      expect(await names({ application: "evreg" })).toEqual(SERVICE_EVENT_NAMES.toSorted());
      expect(await names({ application: "shop" })).toEqual(["order.placed"]);
      expect(await names({ application: "Shop" })).toEqual([]);
      expect(await names({ application: "nobody" })).toEqual([]);
      // More than are read or written in one go.
      const many = Array.from({ length: 21 }, (_, index) => `many.${index}`);
      for (const action of many) await actions.create(newAction({ action, application: "many" }));
      expect(await names({ application: "many" })).toEqual(many.toSorted());
    });
  });

  describe("invalid actions", () => {
    const under = useSharedEvreg(open);

    it("that are not there are refused with what was probably meant, to whoever may read that", async () => {
      await under.evreg.actions.create(newAction({ action: "cart.emptied", application: "carts" }));
      const value = "cart.emtied";
      const refuse = async (scopes: readonly Scope[], meant: object) => {
        const evreg = await under.as(scopes);
        const missing = await refusal(evreg.actions.get(value), "not_found");
        expect(missing.details).toEqual({ record: "action", value, ...meant });
        const unpublished = await refusal(publish(evreg, newEvent({}, value)), "not_found");
        expect(unpublished.details).toEqual({ record: "action", field: "action", value, ...meant });
      };
      await refuse(["read:carts", "publish"], { suggestion: "cart.emptied" });
      await refuse(["read:shop", "publish"], {});
      const unread = await refusal(under.evreg.events.get(999), "not_found");
      expect(unread.details).toEqual({ record: "event" });
    });
  });

  describe("samples and types of an action", () => {
    const under = useSharedEvreg(open);

    it("makes up a payload that can be published, the same for the same seed, and says which seed it chose", async () => {
      const action = freshName();
      await under.evreg.actions.create(newAction({ action, schemata: USER_SCHEMA }));
      const { data } = await under.evreg.actions.sample(action, { seed: 7 });
      expect(data).toMatchObject({ action, revision: 1, seed: 7 });
      await under.evreg.events.publish(newEvent(data.payload, action));
      expect((await under.evreg.actions.sample(action, { seed: 7 })).data).toEqual(data);
      const { data: chosen } = await under.evreg.actions.sample(action);
      expect((await under.evreg.actions.sample(action, { seed: chosen.seed })).data).toEqual(chosen);
    });

    it("says why no payload was found", async () => {
      const action = freshName();
      const schemata = { type: "object", required: ["a"], properties: { a: false } };
      await under.evreg.actions.create(newAction({ action, schemata }));
      expect(await refusal(under.evreg.actions.sample(action), "invalid")).toMatchObject({
        message: expect.stringContaining(`conforms to the schema of ${action}`) as string,
      });
    });

    it("declares types of the schema in force", async () => {
      const action = freshName();
      await under.evreg.actions.create(newAction({ action, schemata: USER_SCHEMA }));
      const { data } = await under.evreg.actions.types(action);
      expect(data).toMatchObject({ action, revision: 1 });
      expect(data.source).toContain(`"${action}": `);
      expect(data.source).toContain("email: string");
      expect(data.source).toContain("export interface DeliveryOf");
    });
  });
}
