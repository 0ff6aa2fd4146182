import { describe, expect, it } from "vitest";
import type { SubscriptionUpdate } from "../../src/domain/subscription.ts";
import { newAction, newSubscription, refusal, subscribe, useEvreg } from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

const DAY_MS = 86_400_000;
/** The clock's at the start. */
const START = Date.parse("2026-01-01T00:00:00.000Z");

export function secretsContract(open: OpenEvreg): void {
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
      const error = await refusal(under.evreg.subscriptions.rotateSecret(1), "conflict");
      expect(error.details).toMatchObject({ previous_secret_until: data.previous_secret_until });
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
