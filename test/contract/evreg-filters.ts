import { describe, expect, it } from "vitest";
import type { Schemata } from "../../src/domain/action.ts";
import {
  endDue,
  newAction,
  newSubscription,
  type OpenEvreg,
  publish,
  refusal,
  subscribe,
  useEvreg,
} from "./harness.ts";

const FILTER: Schemata = { type: "object", properties: { email: { pattern: "@example\\.com$" } } };

const REFUSED: readonly (readonly [filter: Schemata, field: string])[] = [
  [{ type: "strin" }, "filter.type"],
  [{ properties: { "odd name": { minLength: -1 } } }, 'filter.properties["odd name"].minLength'],
  [{ properties: { a: { pattern: "(?=x)" } } }, "filter.properties.a.pattern"],
  [{ $ref: "https://elsewhere.example/schema" }, "filter.$ref"],
  [{ $schema: "https://json-schema.org/draft/2020-12/schema" }, "filter.$schema"],
  [{ allOf: [{ $ref: "#" }] }, "filter"],
  [{ enum: Array.from({ length: 1_001 }, (_, n) => n) }, "filter.enum"],
  [{ description: "x".repeat(70_000) }, "filter"],
];

const holding = (name: string, inner: object): Schemata => ({
  properties: { [name]: inner },
  required: [name],
});

export function filtersContract(open: OpenEvreg): void {
  describe("filters of subscriptions", () => {
    const under = useEvreg(open, ({ evreg }) => evreg.actions.create(newAction()));

    it("are refused with the place of the error, like the schemas of actions", async () => {
      const { rowid } = await subscribe(under.evreg, { filter: FILTER });
      for (const [filter, field] of REFUSED) {
        const input = newSubscription({ subscription: "other", filter });
        const error = await refusal(under.evreg.subscriptions.create(input), "invalid");
        expect(error.details).toMatchObject({ field });
        expect(error.message.startsWith(`${field}: `)).toBe(true);
        const again = await refusal(under.evreg.subscriptions.update(rowid, { filter }), "invalid");
        expect(again.details).toEqual(error.details);
      }
      const { data } = await under.evreg.subscriptions.list();
      expect(data.map(({ filter }) => filter)).toEqual([FILTER]);
    });

    it("come with warnings of probable slips only", async () => {
      const filter = { type: "string", patern: "a" };
      const warnings = [
        { pointer: "/type", message: expect.stringContaining("nothing is sent") },
        { pointer: "/patern", message: expect.stringContaining("did you mean pattern?") },
      ];
      const created = await under.evreg.subscriptions.create(newSubscription({ filter }));
      expect(created.meta).toEqual({ warnings });
      const { rowid } = created.data;
      const updated = await under.evreg.subscriptions.update(rowid, { filter });
      expect(updated.meta).toEqual({ warnings });
      const well = await under.evreg.subscriptions.update(rowid, { filter: FILTER });
      expect(well.meta).toEqual({ warnings: [] });
      for (const change of [{ filter: null }, { max_retries: 3 }]) {
        expect(await under.evreg.subscriptions.update(rowid, change)).not.toHaveProperty("meta");
      }
      // A code of digits is a text in the action's schema.
      for (const [zip, warned] of [
        [7, true],
        ["7", false],
      ] as const) {
        const coded = holding("address", holding("zip", { const: zip }));
        const { meta } = await under.evreg.subscriptions.update(rowid, { filter: coded });
        const pointer = "/properties/address/properties/zip";
        const message = expect.stringContaining("no payload that the schema of user.created allows");
        expect(meta).toEqual({ warnings: warned ? [{ pointer, message }] : [] });
      }
      const plain = await under.evreg.subscriptions.create(newSubscription({ subscription: "plain" }));
      expect(plain).not.toHaveProperty("meta");
    });

    it("leave a record of excluded deliveries, which can be listed, counted and sent", async () => {
      const { rowid } = await subscribe(under.evreg, { filter: FILTER, max_retries: 0 });
      await publish(under.evreg);
      await endDue(under, "filtered");
      await publish(under.evreg);
      await endDue(under, "delivered");
      await publish(under.evreg);
      await endDue(under, "failed");

      const filtered = {
        event_id: 1,
        status: "filtered",
        attempt: 0,
        next_attempt_at: null,
        last_error: null,
        finished_at: "2026-01-01T00:00:00.000Z",
      };
      const { data } = await under.evreg.deliveries.list({ status: "filtered" });
      expect(data).toMatchObject([filtered]);
      expect((await under.evreg.events.deliveries(1)).data).toEqual(data);
      expect((await under.evreg.deliveries.get(1)).data).toEqual({ ...data[0], attempts: [] });

      const counted = async (status: "failed" | "missed" | "all"): Promise<number | null> =>
        (await under.evreg.replays.count(rowid, { from: "2026-01-01T00:00:00Z", status })).data.total;
      await under.clock.advance(1_000);
      expect(await Promise.all([counted("failed"), counted("missed"), counted("all")])).toEqual([1, 0, 3]);

      const { data: again } = await under.evreg.deliveries.retry(1);
      expect(again).toMatchObject({ status: "pending", finished_at: null });
    });
  });
}
