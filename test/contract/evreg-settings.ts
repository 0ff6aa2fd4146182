import { describe, expect, it } from "vitest";
import type { Schemata } from "../../src/domain/action.ts";
import { NO_SETTINGS, type SubscriptionSettings } from "../../src/domain/subscription-settings.ts";
import type { SubscriptionUpdate } from "../../src/domain/subscription.ts";
import {
  endDue,
  makeAny,
  newAction,
  newSubscription,
  publish,
  refusal,
  subscribe,
  useEvreg,
  type OpenEvreg,
} from "./harness.ts";

const ALL: SubscriptionSettings = {
  filter: { type: "object", properties: { country: { const: "FR" } }, required: ["country"] },
  rate_limit: 2.5,
  max_in_flight: 3,
  timeout_ms: 500,
  headers: { "X-Team": "billing", "x-note": "a b" },
  retry_schedule: [0, 60_000, 3_600_000],
  ordered: true,
  on_exhausted: "skip",
  expires_after_ms: null,
};

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

const DAY_MS = 86_400_000;
/** The clock's at the start. */
const START = Date.parse("2026-01-01T00:00:00.000Z");

export function settingsContract(open: OpenEvreg): void {
  describe("settings of subscriptions", () => {
    const under = useEvreg(open, async (target) => {
      await target.evreg.actions.create(newAction());
      await makeAny(target, "any");
    });

    it("are stored as they are given", async () => {
      const { rowid } = await subscribe(under.evreg, ALL);
      expect((await under.evreg.subscriptions.get(rowid)).data).toMatchObject(ALL);
      const byKey = { ordered: { key: "/customer/id" }, on_exhausted: "skip" } as const;
      const { data } = await under.evreg.subscriptions.update(rowid, { ordered: byKey.ordered });
      expect(data).toMatchObject({ ...ALL, ...byKey });
      expect((await under.evreg.subscriptions.update(rowid, { ordered: true })).data).toMatchObject(ALL);
      expect((await under.evreg.subscriptions.list()).data[0]).toMatchObject(ALL);
    });

    it("have as many retries as waits by default", async () => {
      const waits = { retry_schedule: [1_000, 2_000] };
      expect(await subscribe(under.evreg, waits)).toMatchObject({ max_retries: 2 });
      const told = { ...waits, max_retries: 7, action: "any" };
      expect(await subscribe(under.evreg, told)).toMatchObject({ max_retries: 7 });
    });

    it("change one by one, and are removed with null", async () => {
      const { rowid } = await subscribe(under.evreg);
      const settings: Record<string, unknown> = { ...NO_SETTINGS };
      for (const [name, value] of Object.entries(ALL)) {
        settings[name] = value;
        // An ordered one blocks unless it is told otherwise.
        if (name === "ordered") settings["on_exhausted"] = "block";
        const { data } = await under.evreg.subscriptions.update(rowid, { [name]: value });
        expect(data).toMatchObject(settings);
        expect((await under.evreg.subscriptions.get(rowid)).data).toMatchObject(settings);
      }
      for (const name of Object.keys(ALL).filter((one) => one !== "ordered" && one !== "on_exhausted")) {
        settings[name] = null;
        const { data } = await under.evreg.subscriptions.update(rowid, { [name]: null });
        expect(data).toMatchObject(settings);
      }
      const { data } = await under.evreg.subscriptions.update(rowid, { ordered: false });
      expect(data).toMatchObject(NO_SETTINGS);
    });
  });

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
      // What the schema allows is for those who may read it.
      const coded = holding("address", holding("zip", { const: 7 }));
      const writer = await under.as(["write"]);
      const unread = await writer.subscriptions.update(rowid, { filter: coded });
      expect(unread.meta).toEqual({ warnings: [] });
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

  describe("secrets of subscriptions", () => {
    const under = useEvreg(open, ({ evreg }) => evreg.actions.create(newAction()));

    it("can be rotated: the answer has the new one, and until when the old one is valid", async () => {
      const { secret, ...before } = await subscribe(under.evreg);
      const { data } = await under.evreg.subscriptions.rotateSecret(1);
      const until = new Date(START + DAY_MS).toISOString();
      const after = { ...before, previous_secret_until: until };
      expect(data).toEqual({
        ...after,
        secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/) as string,
      });
      expect(data.secret).not.toBe(secret);
      expect((await under.evreg.subscriptions.get(1)).data).toEqual(after);
      expect((await under.evreg.subscriptions.list()).data).toEqual([after]);

      await under.clock.advance(DAY_MS);
      expect((await under.evreg.subscriptions.get(1)).data).toEqual(before);
      expect((await under.evreg.subscriptions.list()).data).toEqual([before]);
      expect((await under.evreg.subscriptions.update(1, { bearer: "secret" })).data).toEqual(before);
    });

    it("can be rotated with an overlap, and without", async () => {
      await subscribe(under.evreg);
      const hour = await under.evreg.subscriptions.rotateSecret(1, { overlap_ms: 3_600_000 });
      expect(hour.data.previous_secret_until).toBe(new Date(START + 3_600_000).toISOString());
      const now = await under.evreg.subscriptions.rotateSecret(1, { overlap_ms: 0 });
      expect(now.data.previous_secret_until).toBeNull();
      expect(now.data.secret).not.toBe(hour.data.secret);
    });

    it("cannot have a second overlap while one lasts", async () => {
      await subscribe(under.evreg);
      const { data } = await under.evreg.subscriptions.rotateSecret(1, { overlap_ms: 1_000 });
      await refusal(under.evreg.subscriptions.rotateSecret(1), "conflict", {
        previous_secret_until: data.previous_secret_until,
      });
      expect((await under.evreg.subscriptions.get(1)).data.previous_secret_until).toBe(
        data.previous_secret_until,
      );
      await under.clock.advance(1_000);
      const again = await under.evreg.subscriptions.rotateSecret(1, { overlap_ms: 1_000 });
      expect(again.data.previous_secret_until).toBe(new Date(START + 2_000).toISOString());
    });

    it("show which kind the bearer is, and never its value", async () => {
      const { data } = await under.evreg.subscriptions.create(newSubscription({ bearer_token: "hunter-2" }));
      expect(data).toMatchObject({ bearer: "own" });
      const answers: unknown[] = [data];
      for (const change of [{ bearer: "own" }, { bearer_token: "hunter-3" }, { handler: data.handler }]) {
        const { data: after } = await under.evreg.subscriptions.update(1, change as SubscriptionUpdate);
        expect(after.bearer).toBe("own");
        answers.push(after);
      }
      answers.push(await under.evreg.subscriptions.get(1), await under.evreg.subscriptions.list());
      answers.push(await under.evreg.subscriptions.rotateSecret(1));
      expect(JSON.stringify(answers)).not.toContain("hunter");
      for (const bearer of ["none", "secret"] as const) {
        expect((await under.evreg.subscriptions.update(1, { bearer })).data.bearer).toBe(bearer);
      }
      const none = await subscribe(under.evreg, { subscription: "other", bearer: "none" });
      expect(none.bearer).toBe("none");
    });
  });
}
