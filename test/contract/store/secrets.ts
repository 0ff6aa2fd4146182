import { expect, it } from "vitest";
import type { SubscriptionPatch } from "../../../src/store/catalog.ts";
import type { ClaimedSubscription } from "../../../src/store/queue.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

/** Past the fixture's claims, which are a minute on. */
const OVERLAP_MS = 3_600_000;

export function secretSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  /** What the next event's delivery is to be signed with. */
  async function claimed(): Promise<Pick<ClaimedSubscription, "secret" | "previous" | "bearer">> {
    const action = await on.catalog.findAction("user.created");
    await on.publish(action!);
    const [claim] = (await on.claim()).claims;
    const { secret, previous, bearer } = claim!.subscription;
    await on.finish(claim!, "delivered");
    return {
      secret,
      ...(previous === undefined ? {} : { previous }),
      ...(bearer === undefined ? {} : { bearer }),
    };
  }

  it("are part of claims, and after a rotation both are while the overlap lasts", async () => {
    const { rowid } = await on.subscription(await on.action());
    expect(await claimed()).toEqual({ secret: "secret of welcome" });
    const rotated = await on.catalog.rotateSecret(rowid, { secret: "second", overlapMs: OVERLAP_MS }, NOW);
    const until = new Date(NOW + OVERLAP_MS).toISOString();
    expect(rotated).toMatchObject({ rowid, previous_secret_until: until });
    expect(await on.catalog.findSubscription(rowid)).toEqual(rotated);
    const previous = { secret: "secret of welcome", untilMs: NOW + OVERLAP_MS };
    expect(await claimed()).toEqual({ secret: "second", previous });
    // Other changes leave it.
    await on.update(rowid, { maxRetries: 1 });
    expect(await claimed()).toEqual({ secret: "second", previous });
  });

  it("change in claims when the bearer value does", async () => {
    const { rowid } = await on.subscription(await on.action());
    const set = async (bearer: NonNullable<SubscriptionPatch["bearer"]>): Promise<unknown> => {
      const after = await on.update(rowid, { bearer });
      expect(after?.bearer).toBe(bearer.kind);
      return (await claimed()).bearer;
    };
    expect(await set({ kind: "own", token: "mine" })).toBe("mine");
    expect(await set({ kind: "none" })).toBeNull();
    expect(await set({ kind: "own", token: "again" })).toBe("again");
    expect(await set({ kind: "secret" })).toBeUndefined();
  });
}
