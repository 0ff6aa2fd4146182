import { beforeEach, describe, expect, it } from "vitest";
import type { SchemaCandidate, Schemata } from "../../src/domain/action.ts";
import { SERVICE_EVENT_NAMES } from "../../src/domain/service-events.ts";
import type { Scope } from "../../src/domain/token.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import {
  ANY_OBJECT,
  freshName,
  newAction,
  newEvent,
  newSubscription,
  publish,
  refusal,
  totalOf,
  USER_SCHEMA,
  useSharedEvreg,
  type OpenEvreg,
} from "./harness.ts";

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

const properties = USER_SCHEMA["properties"] as Schemata;
const WIDER: Schemata = { ...USER_SCHEMA, properties: { ...properties, phone: { type: "string" } } };
const BREAKING: Schemata = { ...USER_SCHEMA, required: ["email", "name"] };

function kind(only: string, ...required: string[]): Schemata {
  return { properties: { kind: { const: only } }, required: ["kind", ...required] };
}

function failure(event: number | undefined) {
  return { event, field: "name", message: "is required" };
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
        const { errors } = await evreg.events.publishBatch([newEvent({}, value)]);
        for (const { details } of [unpublished, errors[0]!])
          expect(details).toEqual({ record: "action", field: "action", value, ...meant });
      };
      await refuse(["read:carts", "publish"], { suggestion: "cart.emptied" });
      await refuse(["read:shop", "publish"], {});
      const unread = await refusal(under.evreg.events.get(999), "not_found");
      expect(unread.details).toEqual({ record: "event" });
    });
  });

  describe("samples of an action", () => {
    const under = useSharedEvreg(open);

    it("makes up a payload that can be published, the same each time", async () => {
      const action = freshName();
      await under.evreg.actions.create(newAction({ action, schemata: USER_SCHEMA }));
      const { data } = await under.evreg.actions.sample(action);
      expect(data).toMatchObject({ action, revision: 1 });
      await under.evreg.events.publish(newEvent(data.payload, action));
      expect((await under.evreg.actions.sample(action)).data).toEqual(data);
    });

    it("says why no payload was found", async () => {
      const action = freshName();
      const schemata = { type: "object", required: ["a"], properties: { a: false } };
      await under.evreg.actions.create(newAction({ action, schemata }));
      expect(await refusal(under.evreg.actions.sample(action), "invalid")).toMatchObject({
        message: expect.stringContaining(`conforms to the schema of ${action}`) as string,
      });
    });
  });

  describe("checking a schema", () => {
    const under = useSharedEvreg(open);
    let name: string;
    beforeEach(() => {
      name = freshName();
    });
    const create = () => under.evreg.actions.create(newAction({ action: name }));
    const ownEvent = () => newEvent(undefined, name);
    const check = async (candidate: SchemaCandidate) =>
      (await under.evreg.actions.check(name, candidate)).data;

    it("reports that a schema would be accepted, and applies nothing", async () => {
      const before = (await create()).data;
      expect(await check({ schemata: WIDER })).toEqual({
        compatible: true,
        breaks: [],
        warnings: [],
        replay: null,
      });
      expect((await under.evreg.actions.get(name)).data).toEqual(before);
    });

    it("reports what a schema would break, as the update would", async () => {
      await create();
      const verdict = await check({ schemata: BREAKING });
      expect(verdict.compatible).toBe(false);
      const { details } = await refusal(under.evreg.actions.update(name, { schemata: BREAKING }), "conflict");
      expect(details["changes"]).toEqual(verdict.breaks);
      expect(verdict.breaks).toMatchObject([{ pointer: "/required", was: ["email"], is: ["email", "name"] }]);
    });

    it("compares with one earlier revision on request", async () => {
      await create();
      await under.evreg.actions.update(name, { schemata: BREAKING }, { compatibility: "none" });
      expect((await check({ schemata: BREAKING })).breaks).toEqual([]);
      const verdict = await check({ schemata: BREAKING, revision: 1 });
      expect(verdict).toMatchObject({ compatible: false, breaks: [{ pointer: "/required" }] });
      await refusal(under.evreg.actions.check(name, { schemata: BREAKING, revision: 9 }), "not_found");
    });

    it("uses another mode on request", async () => {
      await create();
      expect(await check({ schemata: BREAKING, mode: "none" })).toMatchObject({
        compatible: true,
        breaks: [],
      });
      await under.evreg.actions.update(name, { compatibility: "none" });
      expect((await check({ schemata: BREAKING })).compatible).toBe(true);
      expect((await check({ schemata: BREAKING, mode: "full" })).compatible).toBe(false);
    });

    it("validates the last events of the action against it, newest first", async () => {
      await create();
      await under.evreg.actions.create(newAction({ action: "user.deleted" }));
      const nameless: number[] = [];
      for (const given of [{ name: "Ada" }, {}, { name: "Bo" }, {}]) {
        const { rowid } = await publish(under.evreg, newEvent({ email: "ada@example.com", ...given }, name));
        if (given.name === undefined) nameless.push(rowid);
        await publish(under.evreg, newEvent({ email: "ada@example.com" }, "user.deleted"));
      }
      const [first, last] = nameless;
      expect((await check({ schemata: BREAKING, replay: 10_000 })).replay).toEqual({
        checked: 4,
        failed: 2,
        failures: [failure(last), failure(first)],
      });
      expect((await check({ schemata: BREAKING, replay: 2 })).replay).toEqual({
        checked: 2,
        failed: 1,
        failures: [failure(last)],
      });
      expect((await check({ schemata: WIDER, replay: 3 })).replay).toEqual({
        checked: 3,
        failed: 0,
        failures: [],
      });
      expect((await check({ schemata: WIDER, replay: 0 })).replay).toBeNull();
    });

    it("reads any number of events in batches, and lists the first 100 that fail", async () => {
      await create();
      const { data } = await under.evreg.events.publishBatch(Array.from({ length: 250 }, ownEvent));
      const { replay } = await check({ schemata: BREAKING, replay: 240 });
      expect(replay).toMatchObject({ checked: 240, failed: 240 });
      expect(replay?.failures.map(({ event }) => event)).toEqual(
        data
          .map((one) => one?.rowid)
          .toReversed()
          .slice(0, 100),
      );
    });

    it("names what is wrong with the kind that an event is of", async () => {
      await under.evreg.actions.create(newAction({ action: name, schemata: ANY_OBJECT }));
      await publish(under.evreg, newEvent({ kind: "opened" }, name));
      const kinds = [kind("closed", "reason"), kind("opened", "title"), kind("moved", "to")];
      const { replay } = await check({ schemata: { type: "object", oneOf: kinds }, replay: 1 });
      expect(replay?.failures).toMatchObject([{ field: "title", message: "is required" }]);
    });

    it("answers several checks at the same time", async () => {
      await create();
      await publish(under.evreg, ownEvent());
      const checks = [BREAKING, WIDER, BREAKING].map((schemata) => check({ schemata, replay: 5 }));
      expect((await Promise.all(checks)).map(({ replay }) => replay?.failed)).toEqual([1, 0, 1]);
    });

    it("is aborted with its signal; so is a change, which then is not made", async () => {
      await create();
      const signal = AbortSignal.abort(new Error("not wanted any more"));
      const { actions, subscriptions } = under.evreg;
      const unborn = freshName();
      for (const call of [
        () => actions.check(name, { schemata: WIDER }, signal),
        () => actions.update(name, { schemata: WIDER }, {}, signal),
        () => actions.create(newAction({ action: unborn }), signal),
        () => subscriptions.create(newSubscription({ action: name, filter: WIDER }), signal),
      ]) {
        await expect(call()).rejects.toBe(signal.reason);
      }
      expect((await actions.get(name)).data.revision).toBe(1);
      await refusal(actions.get(unborn), "not_found");
      expect((await subscriptions.list({ action: name })).data).toEqual([]);
    });
  });
  describe("checking a payload", () => {
    const under = useSharedEvreg(open);
    let action: string;
    beforeEach(async () => {
      action = freshName();
      await under.evreg.actions.create(newAction({ action }));
    });
    const BROKEN = RawJson.fromValue({ name: "", address: { zip: 7 } });

    it("tells what publishing it would find, and stores nothing", async () => {
      const { actions, events } = under.evreg;
      const fine = await actions.validate(action, RawJson.fromValue({ email: "ada@example.com" }));
      expect(fine).toEqual({ data: { action, revision: 1, valid: true, errors: [] } });
      const { data } = await actions.validate(action, BROKEN);
      expect(data).toMatchObject({ action, revision: 1, valid: false });
      expect(data.errors.map(({ field }) => field).toSorted()).toEqual(["address.zip", "email", "name"]);
      const refused = await refusal(events.publish({ action, payload: BROKEN }), "invalid");
      expect(refused.details["errors"]).toEqual(data.errors);
      expect(await totalOf(under.evreg, action)).toBe(0);
    });

    it("refuses what is no payload of any action, and an action that is not there", async () => {
      const { actions } = under.evreg;
      await refusal(actions.validate(action, RawJson.fromText("[]")), "invalid");
      await refusal(actions.validate(action, RawJson.fromText('{"a":1,"a":2}')), "malformed");
      const large = RawJson.fromValue({ email: "x".repeat(1024 * 1024) });
      await refusal(actions.validate(action, large), "too_large");
      await refusal(actions.validate("nobody", BROKEN), "not_found");
    });

    it("takes the right to read the action or to publish to it", async () => {
      for (const scope of ["read:crm", "publish:crm", "admin"] as const) {
        const { actions } = await under.as([scope]);
        expect((await actions.validate(action, BROKEN)).data.valid, scope).toBe(false);
      }
      const elsewhere = await under.as(["read:shop", "publish:shop"]);
      await refusal(elsewhere.actions.validate(action, BROKEN), "not_found");
      const writer = await under.as(["write"]);
      await refusal(writer.actions.validate(action, BROKEN), "forbidden");
    });
  });
}
