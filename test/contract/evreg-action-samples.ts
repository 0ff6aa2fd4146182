import { describe, expect, it } from "vitest";
import { freshName, newAction, newEvent, refusal, USER_SCHEMA, useSharedEvreg } from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

export function actionSamplesContract(open: OpenEvreg): void {
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
