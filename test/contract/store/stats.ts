import { expect, it } from "vitest";
import { MINUTE_MS, TEN_SECONDS_MS } from "../../../src/domain/stats/stats.ts";
import type { StoredFigures } from "../../../src/domain/stats/tally.ts";
import type { StoredTotal } from "../../../src/store/history.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

const FINISHED = NOW + 61_000;
const END = NOW + 10 * MINUTE_MS;
const ALL_TIME = { fromMs: NOW, toMs: END };

type Counts = Pick<StoredFigures, "published" | "refused" | "delivered" | "failedAttempts" | "failed">;

function countsOf({ published, refused, delivered, failedAttempts, failed }: StoredFigures): Counts {
  return { published, refused, delivered, failedAttempts, failed };
}

const NONE: Counts = { published: 0, refused: 0, delivered: 0, failedAttempts: 0, failed: 0 };

/** Figures over time: counted as things happen, then folded into spans. */
export function statsSuite(open: OpenStore): void {
  const on = Fixture.fresh(open);

  /** Two events of one action, one delivered and one failed for good, and three refusals. */
  async function happen(): Promise<{ action: string; subscription: number }> {
    const action = await on.action();
    const { rowid } = await on.subscription(action, { maxRetries: 0 });
    await on.publish(action, 2);
    const { claims } = await on.claim();
    await on.finish(claims[0]!, "delivered", { statusCode: 200, latencyMs: 40 });
    await on.finish(claims[1]!, "failed", { statusCode: 500 });
    await on.stats.countRefused([{ atMs: FINISHED, action: action.action, count: 3 }]);
    return { action: action.action, subscription: rowid };
  }

  async function fold(): Promise<void> {
    while (await on.stats.fold(END, { fromMs: NOW, toMs: END }));
  }

  async function published(query: object): Promise<number> {
    const steps = await on.stats.steps({ ...ALL_TIME, span: "minute", stepMs: MINUTE_MS, ...query });
    return steps.reduce((sum, { figures }) => sum + figures.published + figures.delivered, 0);
  }

  it("are open until they are folded, and in steps from then on", async () => {
    await happen();
    const before = await on.stats.open({ ...ALL_TIME, by: undefined });
    expect(before.totals).toEqual([]);
    const steps = { ...ALL_TIME, span: "minute", stepMs: MINUTE_MS } as const;
    expect((await on.stats.steps(steps)).filter(({ figures }) => figures.published > 0)).toEqual([]);
    await fold();
    expect((await on.stats.open({ ...ALL_TIME, by: undefined })).steps).toEqual([]);
    const stored = await on.stats.steps(steps);
    expect(stored.map(({ startMs }) => startMs)).toEqual(
      Array.from({ length: 10 }, (_, index) => NOW + index * MINUTE_MS),
    );
    const [first, second, third] = stored.map(({ figures }) => countsOf(figures));
    expect(first).toEqual({ ...NONE, published: 2 });
    expect(second).toEqual({ ...NONE, refused: 3, delivered: 1, failedAttempts: 1, failed: 1 });
    expect(third).toEqual(NONE);
    const tens = await on.stats.steps({ ...ALL_TIME, span: "tenSeconds", stepMs: 2 * MINUTE_MS });
    expect(tens[0]?.figures.published).toBe(2);
  });

  it("have the same totals while they are open and after", async () => {
    const { action, subscription } = await happen();
    const pieces = Array.from({ length: 10 }, (_, index) => {
      return { span: "minute", startMs: NOW + index * MINUTE_MS } as const;
    });
    const own = (totals: readonly StoredTotal[]) =>
      totals.filter(({ subject }) => subject === subscription).map(({ figures }) => countsOf(figures));
    const counts = [{ ...NONE, delivered: 1, failedAttempts: 1, failed: 1 }];
    expect(own((await on.stats.open({ ...ALL_TIME, by: "subscription" })).totals)).toEqual(counts);
    await fold();
    const folded = await on.stats.totals({ by: "subscription", pieces });
    expect(own(folded)).toEqual(counts);
    expect(folded.find(({ subject }) => subject === subscription)?.figures.latency).not.toBe("");
    const byAction = await on.stats.totals({ by: "action", pieces });
    const ofAction = byAction.find(({ subject }) => subject === action);
    expect(ofAction?.figures).toMatchObject({ published: 2, refused: 3 });
    const none = await on.stats.totals({ by: "subscription", pieces, subscription: subscription + 1 });
    expect(none).toEqual([]);
  });

  it("are only those of the applications, action or subscription that are asked for", async () => {
    const { action, subscription } = await happen();
    await fold();
    const selections = [{}, { action: "other" }, { subscription }, { applications: ["nobody"] }];
    expect(await Promise.all(selections.map(published))).toEqual([3, 0, 1, 0]);
    expect(await published({ action })).toBeGreaterThanOrEqual(2);
  });

  it("name their subjects, those with figures first", async () => {
    const { action, subscription } = await happen();
    await on.action("a.first");
    const actions = await on.stats.actions({ first: [action], limit: 5 });
    expect(actions.slice(0, 2)).toMatchObject([
      { action, application: "crm", lastPublishedMs: NOW + 1 },
      { action: "a.first", lastPublishedMs: null },
    ]);
    expect(await on.stats.actions({ first: [], limit: 1 })).toHaveLength(1);
    expect(await on.stats.subscriptions({ first: [subscription], limit: 5 })).toEqual([
      { id: subscription, application: "mailer", subscription: "welcome", action },
    ]);
    expect(await on.stats.subscriptions({ first: [], limit: 5, applications: ["crm"] })).toEqual([]);
  });

  it("are removed when they are too old for their span", async () => {
    await happen();
    await fold();
    const year = 366 * 86_400_000;
    const tens = { ...ALL_TIME, span: "tenSeconds", stepMs: TEN_SECONDS_MS } as const;
    expect((await on.stats.steps(tens)).length).toBeGreaterThan(0);
    let removed = 0;
    for (let some = -1; some !== 0;)
      removed += Math.max(0, (some = await on.stats.removeExpired(NOW + year)));
    expect(removed).toBeGreaterThan(0);
    expect(await on.stats.steps(tens)).toEqual([]);
  });
}
