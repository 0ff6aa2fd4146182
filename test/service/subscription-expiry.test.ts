import { expect, test } from "vitest";
import { createSubscriptionExpiry } from "../../src/service/retention.ts";
import { openLocalService } from "../support/local-service.ts";
import { until } from "../support/until.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { SOLE_NODE } from "../../src/store/thread/store.ts";

const HOUR_MS = 3_600_000;

test("a pull subscription is deleted when nobody has claimed from it for as long as it says", async () => {
  const local = await openLocalService();
  const { evreg, clock } = local;
  const expiry = createSubscriptionExpiry({ evreg, node: SOLE_NODE, clock, logger: silentLogger });
  try {
    await evreg.actions.create({ action: "a.b", application: "shop", schemata: { type: "object" } });
    const make = async (subscription: string, expires_after_ms: number | null): Promise<number> => {
      const names = { application: "shop", subscription, action: "a.b" };
      return (await evreg.subscriptions.create({ ...names, mode: "pull", expires_after_ms })).data.rowid;
    };
    const names = async (): Promise<string[]> =>
      (await evreg.subscriptions.list()).data.map(({ subscription }) => subscription);
    await make("left", 2 * HOUR_MS);
    const used = await make("used", 2 * HOUR_MS);
    await make("kept", null);
    expiry.start();
    const left = async (): Promise<boolean> => !(await names()).includes("left");
    await until("the one that nobody uses is deleted", async () => {
      await clock.advance(HOUR_MS / 2);
      await evreg.subscriptions.claim(used);
      return left();
    });
    expect(await names()).toEqual(["used", "kept"]);
    await until("the other one is deleted as well", async () => {
      await clock.advance(HOUR_MS / 2);
      return !(await names()).includes("used");
    });
    expect(await names()).toEqual(["kept"]);
  } finally {
    await expiry.stop();
    await local.close();
  }
});
