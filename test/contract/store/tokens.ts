import { expect, it } from "vitest";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

export function tokenSuite(open: OpenStore): void {
  const on = Fixture.use(open);
  const createNamed = (hash: string, parentId?: number) => {
    const record = { name: hash, scopes: ["read"], hash, expiresAtMs: NOW + 1_000 };
    return on.tokens.create(parentId === undefined ? record : { ...record, parentId }, NOW);
  };
  const callerOf = async (hash: string) => (await on.tokens.find(hash))?.callerId;

  it("counts a browser as the token that signed it in, all the way up", async () => {
    const first = await createNamed("first");
    const child = await createNamed("child", first.rowid);
    const other = await createNamed("other");
    await createNamed("grandchild", child.rowid);
    const owners = await createNamed("of the owner", 0);
    expect(await callerOf("child")).toBe(first.rowid);
    expect(await callerOf("grandchild")).toBe(first.rowid);
    expect(await callerOf("other")).toBe(other.rowid);
    expect(await callerOf("of the owner")).toBe(owners.rowid);
  });

  it("keeps one admin token, however many revoke each other at once", async () => {
    const admin = { name: "a", scopes: ["read", "admin"] };
    const tokens = await Promise.all(
      ["1", "2", "3"].map((hash) => on.tokens.create({ ...admin, hash }, NOW)),
    );
    // One that is about to end does not count.
    await on.tokens.create({ ...admin, hash: "4", expiresAtMs: NOW + 60_000 }, NOW - 1);
    const narrow = await on.tokens.create({ name: "n", scopes: ["admin:x", "read"], hash: "5" }, NOW);
    const revoked = await Promise.allSettled(
      tokens.map(({ rowid }) => on.tokens.revoke(rowid, NOW, { managed: true })),
    );
    const refused = revoked.filter(({ status }) => status === "rejected");
    expect(refused).toEqual([{ status: "rejected", reason: expect.objectContaining({ code: "conflict" }) }]);
    expect(await on.tokens.revoke(narrow.rowid, NOW, { managed: true })).toEqual(narrow);
    expect((await on.tokens.list()).map(({ name }) => name)).toEqual(["a", "a"]);
    const [last] = await on.tokens.list();
    expect(await on.tokens.revoke(last!.rowid, NOW)).toEqual(last);
  });

  it("makes none for a token that was revoked a moment ago, nor more than 32 for one and its family", async () => {
    const made = async (hash: string, parentId: number) =>
      (await on.tokens.create({ name: "browser", scopes: ["read"], hash, parentId }, NOW)).rowid;
    const parent = await on.tokens.create({ name: "p", scopes: ["read"], hash: "p" }, NOW);
    const family = [parent.rowid];
    for (let count = 0; count < 32; count += 1) family.push(await made(`c${count}`, family.at(-1)!));
    await expect(made("more", family[20]!)).rejects.toMatchObject({ code: "rate_limited" });
    await on.tokens.revoke(parent.rowid, NOW);
    await expect(made("late", family[20]!)).rejects.toMatchObject({ code: "unauthorized" });
    expect(await on.tokens.find("c31")).toBeUndefined();
  });

  it("never reuses a revoked token's rowid", async () => {
    const first = await on.tokens.create({ name: "a", scopes: [], hash: "1" }, NOW);
    await on.tokens.revoke(first.rowid, NOW);
    const second = await on.tokens.create({ name: "b", scopes: [], hash: "2" }, NOW);
    expect(second.rowid).toBeGreaterThan(first.rowid);
  });

  it("stores the time of the last use, and never an older one", async () => {
    const { rowid } = await on.tokens.create({ name: "a", scopes: [], hash: "1" }, NOW);
    await on.tokens.recordUses([
      { rowid, atMs: NOW + 5 },
      { rowid: 99, atMs: NOW },
    ]);
    await on.tokens.recordUses([{ rowid, atMs: NOW + 2 }]);
    await on.tokens.recordUses([]);
    expect((await on.tokens.find("1"))?.last_used_at).toBe("2026-03-01T12:00:00.005Z");
  });
}
