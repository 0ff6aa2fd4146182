import { beforeEach, describe, expect, it } from "vitest";
import type { ActionUpdate, CompatibilityMode, Schemata } from "../../src/domain/action.ts";
import { freshName, newAction, newEvent, publish, refusal, USER_SCHEMA, useSharedEvreg } from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

const properties = USER_SCHEMA["properties"] as Schemata;
/** The schema with these optional properties more. */
function withMore(...names: string[]): Schemata {
  const more = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
  return { ...USER_SCHEMA, properties: { ...properties, ...more } };
}

/** What schemas may say besides. */
const ODD = { description: "NUL \u0000, \u2028, 'quotes' \"double\" \\ and 🦉" };
/** Breaks who reads, and nobody who publishes. */
const LOOSENED: Schemata = { ...USER_SCHEMA, required: [] };

/** One optional property more. */
const WIDER = withMore("phone");
/** One required property more. */
const BREAKING: Schemata = { ...USER_SCHEMA, required: ["email", "name"] };

export function actionUpdatesContract(open: OpenEvreg): void {
  describe("updating actions", () => {
    const under = useSharedEvreg(open);
    let name: string;
    beforeEach(() => {
      name = freshName();
    });
    const create = async () => (await under.evreg.actions.create(newAction({ action: name }))).data;
    const ownEvent = () => newEvent(undefined, name);

    it("applies a compatible schema as the next revision", async () => {
      const before = await create();
      await under.clock.advance(1_000);
      const { data, meta } = await under.evreg.actions.update(name, { schemata: WIDER });
      expect(data).toEqual({ ...before, schemata: WIDER, revision: 2 });
      expect(meta).toEqual({ warnings: [] });
      expect((await under.evreg.actions.get(name)).data).toEqual(data);
    });

    it("creates no revision of the same schema, in whatever order its members are", async () => {
      const before = await create();
      const turned = Object.fromEntries(Object.entries(USER_SCHEMA).toReversed());
      const { data } = await under.evreg.actions.update(name, { schemata: turned });
      expect(data).toEqual(before);
    });

    it("refuses a breaking schema with the list of breaks and a name for a new version", async () => {
      const before = await create();
      const update = under.evreg.actions.update(name, { schemata: BREAKING });
      const { details, message } = await refusal(update, "conflict");
      expect(details["changes"]).toEqual([
        {
          side: "producer",
          pointer: "/required",
          field: "name",
          was: ["email"],
          is: ["email", "name"],
          change: 'The property "name" has become required.',
          message: 'The property "name" has become required. A producer that does not send it is refused.',
          remedy: 'Leave "name" out of required.',
          certainty: "proven",
          example: { email: expect.stringContaining("@") },
        },
      ]);
      expect(details).toMatchObject({ suggestion: `${name}.v2`, application: expect.any(String) });
      expect(message).toContain(`${name}.v2`);
      expect((await under.evreg.actions.get(name)).data).toEqual(before);
    });

    it("suggests a name that is free", async () => {
      await create();
      await under.evreg.actions.create(newAction({ action: `${name}.v2` }));
      await under.evreg.actions.create(newAction({ action: `${name}.v3` }));
      const update = under.evreg.actions.update(name, { schemata: BREAKING });
      expect((await refusal(update, "conflict")).details["suggestion"]).toBe(`${name}.v4`);
    });

    it("applies a breaking schema on request", async () => {
      await create();
      const none = { compatibility: "none" } as const;
      const { data } = await under.evreg.actions.update(name, { schemata: BREAKING }, none);
      expect(data).toMatchObject({ revision: 2, schemata: BREAKING });
      await refusal(publish(under.evreg, ownEvent()), "invalid");
    });

    it("refuses an unknown compatibility option", async () => {
      await create();
      const options = { compatibility: "full" } as unknown as { compatibility: "none" };
      const update = under.evreg.actions.update(name, { schemata: WIDER }, options);
      await refusal(update, "malformed", { field: "compatibility", value: "full" });
    });

    it("accepts a whole action as it was read", async () => {
      const before = await create();
      const { data } = await under.evreg.actions.update(name, { ...before, schemata: WIDER });
      expect(data).toEqual({ ...before, schemata: WIDER, revision: 2 });
    });

    it.each([
      ["action", "user.deleted"],
      ["rowid", 99],
      ["revision", 7],
      ["timestamped", "2020-01-01T00:00:00.000Z"],
    ])("refuses a whole action whose %s differs", async (member, value) => {
      const before = await create();
      const input = { ...before, schemata: WIDER, [member]: value } as ActionUpdate;
      await refusal(under.evreg.actions.update(name, input), "invalid", { field: member, value });
      expect((await under.evreg.actions.get(name)).data).toEqual(before);
    });

    it("moves an action to another application, with or without a new schema", async () => {
      await create();
      const moved = { schemata: USER_SCHEMA, application: " shop " };
      const { data } = await under.evreg.actions.update(name, moved);
      expect(data).toMatchObject({ application: "shop", schemata: USER_SCHEMA });
      expect((await under.evreg.actions.list({ application: "shop" })).data).toEqual([data]);
      await under.evreg.actions.update(name, { schemata: WIDER, application: "crm" });
      expect((await under.evreg.actions.get(name)).data).toMatchObject({
        application: "crm",
        schemata: WIDER,
      });
      await expect(publish(under.evreg, ownEvent())).resolves.toMatchObject({ action: name });
    });

    it("warns of what the new schema does not check, as a check does", async () => {
      await create();
      const schemata = { ...WIDER, descripton: "slip" };
      const { meta } = await under.evreg.actions.update(name, { schemata });
      expect(meta?.warnings).toEqual([{ pointer: "/descripton", message: expect.stringMatching(/./) }]);
      const checked = await under.evreg.actions.check(name, { schemata });
      expect(checked.data.warnings).toEqual(meta?.warnings);
    });

    it("applies each of several concurrent updates", async () => {
      await create();
      const updates = Array.from({ length: 8 }, (_, index) =>
        under.evreg.actions.update(name, { schemata: { ...USER_SCHEMA, title: `no. ${index}` } }),
      );
      const revisions = (await Promise.all(updates)).map(({ data }) => data.revision);
      expect(revisions.toSorted((one, other) => one - other)).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    });

    it("refuses one of two concurrent updates that contradict each other", async () => {
      await create();
      const updates = ["string", "integer"].map((type) => {
        const phone = { ...USER_SCHEMA, properties: { ...properties, phone: { type } } };
        return under.evreg.actions.update(name, { schemata: phone });
      });
      const ends = await Promise.allSettled(updates);
      expect(ends.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    });

    it("checks payloads by the current schema, and each event keeps its revision", async () => {
      await create();
      const first = await publish(under.evreg, ownEvent());
      const schemata = { ...WIDER, properties: { ...properties, phone: { type: "string" } } };
      await under.evreg.actions.update(name, { schemata });
      const withPhone = newEvent({ email: "ada@example.com", phone: 7 }, name);
      await refusal(publish(under.evreg, withPhone), "invalid", { field: "phone", value: 7 });
      const second = await publish(under.evreg, ownEvent());
      expect([first.revision, second.revision]).toEqual([1, 2]);
      expect((await under.evreg.events.get(first.rowid)).data.revision).toBe(1);
    });
  });

  describe("the history of actions", () => {
    const under = useSharedEvreg(open);
    let name: string;
    beforeEach(() => {
      name = freshName();
    });
    const create = (rule: { readonly compatibility?: CompatibilityMode } = {}) =>
      under.evreg.actions.create({ ...newAction({ action: name }), ...rule });

    it("stores each schema with its number and time, newest first, page by page", async () => {
      const createdMs = under.clock.now();
      await create();
      await under.clock.advance(1_000);
      await under.evreg.actions.update(name, { schemata: { ...withMore("10", "2"), ...ODD } });
      await under.evreg.actions.update(name, { schemata: withMore("10", "2", "b") });
      const { data } = await under.evreg.actions.revisions(name);
      expect(data.map(({ revision }) => revision)).toEqual([3, 2, 1]);
      expect(data[2]).toEqual({
        action: name,
        revision: 1,
        schemata: USER_SCHEMA,
        compatibility: null,
        timestamped: new Date(createdMs).toISOString(),
      });
      expect(data[1]).toMatchObject({
        schemata: { ...withMore("10", "2"), ...ODD },
        timestamped: new Date(createdMs + 1_000).toISOString(),
      });
      const paged = await under.evreg.actions.revisions(name, { limit: 1, after: 3 });
      expect(paged.data).toEqual([data[1]]);
      expect(await under.evreg.actions.revision(name, 1)).toEqual({ data: data[2] });
      // More than are read or written in one go.
      for (let number = 4; number <= 21; number++) {
        await under.evreg.actions.update(name, { application: `owner${number % 2}` });
      }
      const numbers = async (query: { limit: number; after?: number }): Promise<number[]> =>
        (await under.evreg.actions.revisions(name, query)).data.map(({ revision }) => revision);
      const all = Array.from({ length: 21 }, (_, index) => 21 - index);
      expect(await numbers({ limit: 50 })).toEqual(all);
      expect(await numbers({ limit: 20 })).toEqual(all.slice(0, 20));
      expect(await numbers({ limit: 12, after: 20 })).toEqual(all.slice(2, 14));
    });

    it("records the mode in which each revision was accepted", async () => {
      await create();
      const { actions } = under.evreg;
      await actions.update(name, { schemata: withMore("a") });
      await actions.update(name, { schemata: BREAKING }, { compatibility: "none" });
      await actions.update(name, { schemata: LOOSENED, compatibility: "producer" });
      await actions.update(name, { application: "moved" });
      const { data } = await actions.revisions(name);
      expect(data.map(({ compatibility }) => compatibility)).toEqual([
        "producer",
        "producer",
        "none",
        "full",
        null,
      ]);
    });

    it("rolls back by an update with an earlier schema", async () => {
      await create();
      await under.evreg.actions.update(name, { schemata: withMore("a") });
      const { schemata } = (await under.evreg.actions.revision(name, 1)).data;
      await refusal(under.evreg.actions.update(name, { schemata }), "conflict");
      const { data } = await under.evreg.actions.update(name, { schemata }, { compatibility: "none" });
      expect(data).toMatchObject({ revision: 3, schemata: USER_SCHEMA });
    });

    it.each([
      ["full", [BREAKING, LOOSENED], []],
      ["producer", [BREAKING], [LOOSENED]],
      ["consumer", [LOOSENED], [BREAKING]],
    ] as const)("in mode %s refuses what breaks those it protects", async (mode, refused, applied) => {
      expect((await create({ compatibility: mode })).data.compatibility).toBe(mode);
      for (const schemata of refused) {
        await refusal(under.evreg.actions.update(name, { schemata }), "conflict");
      }
      for (const schemata of applied) {
        const { data } = await under.evreg.actions.check(name, { schemata });
        expect(data).toMatchObject({ compatible: true, breaks: [] });
      }
      const { data } = await under.evreg.actions.update(name, { schemata: withMore("a") });
      expect(data).toMatchObject({ revision: 2, compatibility: mode });
    });

    it("in mode none applies anything", async () => {
      await create({ compatibility: "none" });
      const writer = await under.as(["write"]);
      const { data } = await writer.actions.update(name, { schemata: BREAKING });
      expect(data).toMatchObject({ revision: 2, schemata: BREAKING });
    });

    it("compares with the schema in force, and with no other", async () => {
      await create();
      const { actions } = under.evreg;
      await actions.update(name, { schemata: withMore("a") });
      await actions.update(name, { schemata: USER_SCHEMA }, { compatibility: "none" });
      const otherA = { ...USER_SCHEMA, properties: { ...properties, a: { type: "integer" } } };
      expect((await actions.update(name, { schemata: otherA })).data.revision).toBe(4);
    });

    it("changes the mode without a revision, and checks the schema sent with it by the new mode", async () => {
      const before = (await create()).data;
      const { data } = await under.evreg.actions.update(name, { compatibility: "producer" });
      expect(data).toEqual({ ...before, compatibility: "producer" });
      const both = { compatibility: "none", schemata: BREAKING } as const;
      expect((await under.evreg.actions.update(name, both)).data).toMatchObject({ ...both, revision: 2 });
      const back = { compatibility: "full", schemata: USER_SCHEMA } as const;
      await refusal(under.evreg.actions.update(name, back), "conflict");
      expect((await under.evreg.actions.get(name)).data).toMatchObject({
        compatibility: "none",
        revision: 2,
      });
    });

    it("needs admin to protect less than before, and write to protect more", async () => {
      await create({ compatibility: "producer" });
      const writer = await under.as(["write"]);
      for (const compatibility of ["consumer", "none"] as const) {
        const error = await refusal(writer.actions.update(name, { compatibility }), "forbidden");
        expect(error.details).toEqual({ scope: "admin" });
      }
      const stricter = { compatibility: "full" } as const;
      expect((await writer.actions.update(name, stricter)).data).toMatchObject(stricter);
      const admin = await under.as(["admin:crm"]);
      const none = { compatibility: "none" } as const;
      expect((await admin.actions.update(name, none)).data).toMatchObject(none);
    });
  });
}
