import { expect, it } from "vitest";
import type { Delivery } from "../../../src/domain/delivery.ts";
import { DELIVERY_STATUSES } from "../../../src/model/delivery.ts";
import type { Claim, DeliverySelection } from "../../../src/store/queue.ts";
import { eventOf, Fixture, NOW, type OpenStore } from "./fixture.ts";

export function deliveryListSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("returns with any filters exactly the matching deliveries, however rare", async () => {
    const [a, b] = [await on.action("a"), await on.action("b")];
    const many = await on.subscription(a, { application: "x", subscription: "many" });
    const moved = await on.subscription(a, { application: "x", subscription: "moved" });
    const paused = await on.subscription(a, { application: "y", subscription: "paused" });
    const left = await on.subscription(b, { application: "y", subscription: "left" });
    const record = async (action: typeof a, count: number, nowMs: number): Promise<void> => {
      const batch = Array.from({ length: count }, () => eventOf(action));
      await on.events.record(batch, nowMs);
    };
    await record(b, 3, NOW);
    await record(a, 3, NOW);
    // What the first ones become is under very many delivered ones later on.
    const first = await on.claim({ limit: 100 });
    const ends = [
      (claim: Claim) => on.failForGood(claim),
      (claim: Claim) => on.fail(claim, NOW + 99_000_000),
      (claim: Claim) => on.finish(claim, "delivered"),
      (claim: Claim) => on.finish(claim, "filtered"),
    ];
    for (const [n, claim] of first.claims.entries()) await ends[n % 4]!(claim);
    for (let batch = 1; batch <= 4; batch += 1) {
      await record(a, 120, NOW + batch * 1_000);
      await on.endAll("delivered", {}, { limit: 1_000, most: 1_000 });
    }
    await on.update(moved.rowid, { action: "b" });
    await record(b, 2, NOW + 5_000);
    const backlogs = ["a", "b"].map((action) =>
      on.queue.backlog(NOW + 5_000, { action, subscription: moved.rowid }),
    );
    const due = (await Promise.all(backlogs)).map((backlog) => backlog.due.deliveries);
    expect(due).toEqual([0, 2]);
    await record(a, 2, NOW + 6_000);
    await on.claim({ limit: 3 });
    await on.update(paused.rowid, { active: false });
    await on.catalog.deleteSubscription(left.rowid, NOW);

    const walk = async (query: Partial<DeliverySelection>, limit: number): Promise<Delivery[]> => {
      const found: Delivery[] = [];
      for (let after: number | undefined; ;) {
        const page = await on.queue.list({
          ...query,
          limit,
          ...(after === undefined ? {} : { after }),
        });
        found.push(...page);
        if (page.length < limit) return found;
        after = page.at(-1)?.rowid;
      }
    };
    const all = await walk({}, 500);
    expect(all.length).toBeGreaterThan(1_440);
    const rowids = all.map(({ rowid }) => rowid);
    expect(rowids).toEqual(rowids.toSorted((one, other) => other - one));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set(DELIVERY_STATUSES));

    const who: [Partial<DeliverySelection>, (delivery: Delivery) => boolean][] = [
      [{}, () => true],
      [{ subscription: many.rowid }, (d) => d.subscription === "many"],
      [{ subscription: left.rowid }, (d) => d.subscription === "left"],
      [{ applications: ["y"] }, (d) => d.application === "y"],
      [{ action: "b" }, (d) => d.action === "b"],
      [{ action: "b", applications: ["x"] }, (d) => d.action === "b" && d.application === "x"],
      [{ event: 2 }, (d) => d.event_id === 2],
      [{ event: 4, applications: ["x"] }, (d) => d.event_id === 4 && d.application === "x"],
      [{ applications: ["y"], subscription: many.rowid }, () => false],
      [{ applications: [] }, () => false],
      [{ event: 99_999 }, () => false],
      [{ action: "none" }, () => false],
    ];
    const when: [Partial<DeliverySelection>, (delivery: Delivery) => boolean][] = [
      [{}, () => true],
      [{ toMs: NOW + 1_000 }, (d) => Date.parse(d.timestamped) < NOW + 1_000],
      [{ fromMs: NOW + 2_000 }, (d) => Date.parse(d.timestamped) >= NOW + 2_000],
    ];
    for (const [whose, isTheirs] of who) {
      for (const [time, isThen] of when) {
        const some = all.filter((delivery) => isTheirs(delivery) && isThen(delivery));
        for (const status of DELIVERY_STATUSES) {
          const expected = some.filter((delivery) => delivery.status === status);
          const query = { ...whose, ...time, status };
          expect([query, await walk(query, expected.length < 20 ? 3 : 500)]).toEqual([query, expected]);
        }
        expect(await walk({ ...whose, ...time }, 500)).toEqual(some);
      }
    }
  });
}
