import { expect, it } from "vitest";
import { hashCode, SIGN_IN_CODES } from "../../../src/domain/token-secret.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

/** So late that codes of before count no more. */
const laterMs = (count: number) => NOW + count * SIGN_IN_CODES.holdMs;

const record = (hash: string) => ({ name: hash, scopes: ["read"], hash, expiresAtMs: NOW + 1_000 });

export function tokenSuite(open: OpenStore): void {
  const on = Fixture.use(open);
  const codeOf = (parentId: number, text: string, nowMs = NOW) =>
    on.tokens.create(
      { ...record(hashCode(text)), expiresAtMs: nowMs + SIGN_IN_CODES.holdMs, parentId },
      nowMs,
    );
  /** @param parentId the token that signs it in, by a code */
  const createNamed = async (hash: string, parentId?: number) => {
    const code = parentId === undefined ? undefined : await codeOf(parentId, hash);
    const given = code === undefined ? {} : { parentId: code.rowid };
    return await on.tokens.create({ ...record(hash), ...given }, NOW);
  };
  const callerOf = async (hash: string) => (await on.tokens.find(hash))?.callerId;

  it("counts a browser as the token that signed it in", async () => {
    const first = await createNamed("first");
    await createNamed("child", first.rowid);
    const other = await createNamed("other");
    await createNamed("of the owner", 0);
    expect(await callerOf("child")).toBe(first.rowid);
    expect(await callerOf("other")).toBe(other.rowid);
    expect(await callerOf("of the owner")).toBe((await on.tokens.find(hashCode("of the owner")))?.rowid);
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

  it("makes none for a token that was revoked a moment ago, nor more than 32 for one", async () => {
    const parent = await createNamed("p");
    const codes: number[] = [];
    const made = async (count: number) => {
      const ends = { expiresAtMs: laterMs(1_000) };
      const { rowid } = await on.tokens.create(
        { ...record(hashCode(`${count}`)), ...ends, parentId: parent.rowid },
        laterMs(count),
      );
      codes.push(rowid);
      return on.tokens.create({ ...record(`c${count}`), ...ends, parentId: rowid }, laterMs(count));
    };
    for (let count = 0; count < 32; count += 1) await made(count);
    await expect(made(32)).rejects.toMatchObject({ code: "rate_limited" });
    await on.tokens.revoke(parent.rowid, NOW);
    await expect(on.tokens.create({ ...record("late"), parentId: codes[20]! }, NOW)).rejects.toMatchObject({
      code: "unauthorized",
    });
    expect(await on.tokens.find("c31")).toBeUndefined();
  });

  it("makes 16 codes in two minutes for a token, and one for another none the less", async () => {
    const [parent, other] = [await createNamed("p"), await createNamed("other")];
    for (let made = 0; made < 16; made += 1) await codeOf(parent.rowid, `${made}`);
    await expect(codeOf(parent.rowid, "more")).rejects.toMatchObject({ code: "rate_limited" });
    await codeOf(other.rowid, "of another");
  });

  it("never reuses a revoked token's rowid", async () => {
    const first = await on.tokens.create({ name: "a", scopes: [], hash: "1" }, NOW);
    await on.tokens.revoke(first.rowid, NOW);
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
