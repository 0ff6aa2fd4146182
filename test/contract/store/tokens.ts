import { expect, it } from "vitest";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

export function tokenSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("keeps one admin token, however many revoke each other at once", async () => {
    const admin = { name: "a", scopes: ["read", "admin"] };
    const tokens = await Promise.all(
      ["1", "2", "3"].map((hash) => on.tokens.create({ ...admin, hash }, NOW)),
    );
    // One that is about to end does not count.
    await on.tokens.create({ ...admin, hash: "4", expiresAtMs: NOW + 60_000 }, NOW - 1);
    const narrow = await on.tokens.create({ name: "n", scopes: ["admin:x", "read"], hash: "5" }, NOW);
    const revoked = await Promise.allSettled(tokens.map(({ rowid }) => on.tokens.revoke(rowid, true, NOW)));
    const refused = revoked.filter(({ status }) => status === "rejected");
    expect(refused).toEqual([{ status: "rejected", reason: expect.objectContaining({ code: "conflict" }) }]);
    expect(await on.tokens.revoke(narrow.rowid, true, NOW)).toEqual(narrow);
    expect((await on.tokens.list()).map(({ name }) => name)).toEqual(["a", "a"]);
    const [last] = await on.tokens.list();
    expect(await on.tokens.revoke(last!.rowid, false, NOW)).toEqual(last);
  });

  it("never reuses a revoked token's rowid", async () => {
    const first = await on.tokens.create({ name: "a", scopes: [], hash: "1" }, NOW);
    await on.tokens.revoke(first.rowid, false, NOW);
    const second = await on.tokens.create({ name: "b", scopes: [], hash: "2" }, NOW);
    expect(second.rowid).toBeGreaterThan(first.rowid);
  });

  it("stores the time of the last use, and never an older one", async () => {
    const { rowid } = await on.tokens.create({ name: "a", scopes: [], hash: "1" }, NOW);
    await on.tokens.recordUse(rowid, NOW + 5);
    await on.tokens.recordUse(99, NOW);
    await on.tokens.recordUse(rowid, NOW + 2);
    expect((await on.tokens.find("1"))?.last_used_at).toBe("2026-03-01T12:00:00.005Z");
  });
}
