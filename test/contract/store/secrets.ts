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

  it("have one overlap at a time: another is a conflict until it ends, and none ends it", async () => {
    const { rowid } = await on.subscription(await on.action());
    const rotate = (secret: string, overlapMs: number, nowMs: number): Promise<unknown> =>
      on.catalog.rotateSecret(rowid, { secret, overlapMs }, nowMs);
    await rotate("second", OVERLAP_MS, NOW);
    await expect(rotate("third", OVERLAP_MS, NOW + OVERLAP_MS - 1)).rejects.toMatchObject({
      code: "conflict",
      details: { previous_secret_until: new Date(NOW + OVERLAP_MS).toISOString() },
    });
    expect(await claimed()).toMatchObject({ secret: "second", previous: { secret: "secret of welcome" } });
    await rotate("fourth", 0, NOW);
    expect(await claimed()).toEqual({ secret: "fourth" });
    await rotate("fifth", OVERLAP_MS, NOW);
    await rotate("sixth", OVERLAP_MS, NOW + OVERLAP_MS);
    const previous = { secret: "fifth", untilMs: NOW + 2 * OVERLAP_MS };
    expect(await claimed()).toEqual({ secret: "sixth", previous });
  });

  it("are answered by themselves, by the latest rotation and until the subscription is deleted", async () => {
    const { catalog } = on.store;
    const { rowid } = await on.subscription(await on.action());
    expect(await catalog.findSecret(rowid)).toBe("secret of welcome");
    await catalog.rotateSecret(rowid, { secret: "second", overlapMs: OVERLAP_MS }, NOW);
    expect(await catalog.findSecret(rowid)).toBe("second");
    expect(await catalog.findSecret(rowid + 1)).toBeUndefined();
    await catalog.deleteSubscription(rowid, NOW);
    expect(await catalog.findSecret(rowid)).toBeUndefined();
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
