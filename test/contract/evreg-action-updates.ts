import { beforeEach, describe, expect, it } from "vitest";
import type { ActionUpdate, Schemata } from "../../src/domain/action.ts";
import { freshName, newAction, newEvent, publish, refusal, USER_SCHEMA, useSharedEvreg } from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

const properties = USER_SCHEMA["properties"] as Schemata;
/** One optional property more. */
const WIDER: Schemata = { ...USER_SCHEMA, properties: { ...properties, phone: { type: "string" } } };
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
          revision: 1,
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
      expect((await refusal(update, "malformed")).details).toMatchObject({
        field: "compatibility",
        value: "full",
      });
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
      const error = await refusal(under.evreg.actions.update(name, input), "invalid");
      expect(error.details).toMatchObject({ field: member, value });
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
      expect((await refusal(publish(under.evreg, withPhone), "invalid")).details).toMatchObject({
        field: "phone",
        value: 7,
      });
      const second = await publish(under.evreg, ownEvent());
      expect([first.revision, second.revision]).toEqual([1, 2]);
      expect((await under.evreg.events.get(first.rowid)).data.revision).toBe(1);
    });

    it("accepts events while the schema changes", async () => {
      await create();
      const work = Array.from({ length: 60 }, (_, index) =>
        index % 10 === 5
          ? under.evreg.actions.update(name, { schemata: { ...USER_SCHEMA, title: `${index}` } })
          : publish(under.evreg, ownEvent()),
      );
      await Promise.all(work);
      expect((await under.evreg.events.list({ action: name })).meta.total).toBe(54);
      expect((await under.evreg.actions.get(name)).data.revision).toBe(7);
    });
  });
}
