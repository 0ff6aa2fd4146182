import { expect, it } from "vitest";
import type { BacklogOf } from "../../../src/store/queue.ts";
import { agreedBacklog } from "./agreed-backlog.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

/** What is counted by which causes is among the stories of deliveries. */
export function backlogSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("is that of some subscriptions alone, where that is asked for", async () => {
    const action = await on.action();
    const { rowid } = await on.subscription(action);
    await on.subscription(action, { subscription: "other", application: "crm" });
    await on.publish(action, 3);
    const dueOf = async (of: BacklogOf) => (await agreedBacklog(on.queue, NOW + 10, of)).due.deliveries;
    expect(await dueOf({})).toBe(6);
    expect(await dueOf({ subscription: rowid })).toBe(3);
    expect(await dueOf({ applications: ["crm", "shop"] })).toBe(3);
    expect(await dueOf({ applications: ["crm"], subscription: rowid })).toBe(0);
    expect(await dueOf({ action: "*" })).toBe(6);
    expect(await dueOf({ action: "no.such" })).toBe(0);
  });
}
