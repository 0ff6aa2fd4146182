import { describe, expect, it } from "vitest";
import { NO_SETTINGS, type SubscriptionSettings } from "../../src/domain/subscription-settings.ts";
import { claimRequest } from "../support/claim-request.ts";
import { makeAny, newAction, newEvent, publish, subscribe, useEvreg } from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

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
      expect(data).toMatchObject({ ...ALL, ...byKey, blocked_keys: 0 });
      expect((await under.evreg.subscriptions.update(rowid, { ordered: true })).data).toMatchObject({
        ...ALL,
        blocked_keys: null,
      });
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

    it("ordered: only the first in the order of publication shows when it is next", async () => {
      const { evreg, clock, store } = under;
      await subscribe(evreg, { action: "any", ordered: true });
      for (let count = 0; count < 3; count += 1) await publish(evreg, newEvent({}, "any"));
      const { data: waiting } = await evreg.deliveries.list();
      expect(waiting.map((one) => [one.status, one.next_attempt_at])).toEqual([
        ["pending", null],
        ["pending", null],
        ["pending", waiting[2]?.timestamped],
      ]);
      const request = claimRequest({ nowMs: clock.now(), most: 2 });
      const { claims } = await store.queue.claim(request);
      expect(claims.map(({ event }) => event.eventId)).toEqual([1]);
      expect((await store.queue.claim(request)).claims).toEqual([]);
    });
  });
}
