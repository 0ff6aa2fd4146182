import { describe, expect, it } from "vitest";
import { isTokenForm } from "../../src/domain/token-secret.ts";
import type { Evreg } from "../../src/evreg.ts";
import { refusal, useEvreg, useSharedEvreg, type OpenEvreg } from "./harness.ts";

export function tokensContract(open: OpenEvreg): void {
  describe("tokens", () => {
    const under = useSharedEvreg(open);

    it("show their value at creation and never again", async () => {
      const input = {
        name: " shop ",
        scopes: ["publish:billing", "read"],
        expires_at: "2026-01-01T01:00:00+01:00",
      };
      await refusal(under.evreg.tokens.create(input), "invalid");
      const later = { ...input, expires_at: "2026-01-01T02:00:00+01:00" };
      const { token, ...record } = (await under.evreg.tokens.create(later)).data;
      expect(token).toMatch(/^evreg_[0-9A-Za-z]{36}$/);
      expect(isTokenForm(token)).toBe(true);
      expect(record).toEqual({
        rowid: expect.any(Number),
        name: "shop",
        scopes: ["publish:billing", "read"],
        expires_at: "2026-01-01T01:00:00.000Z",
        last_used_at: null,
        timestamped: "2026-01-01T00:00:00.000Z",
      });
      const { data } = await under.evreg.tokens.list();
      expect(data).toContainEqual(record);
      expect(JSON.stringify(data)).not.toContain(token.slice(6));
    });

    it("may never expire", async () => {
      const { data } = await under.evreg.tokens.create({ name: "n", scopes: ["admin"] });
      expect(data).toMatchObject({ expires_at: null, scopes: ["admin"] });
    });

    it("list each scope once, with its application trimmed", async () => {
      const scopes = ["read", "read", "write: a:b ", "write:a:b", "publish"];
      const { data } = await under.evreg.tokens.create({ name: "n", scopes });
      expect(data.scopes).toEqual(["read", "write:a:b", "publish"]);
    });

    it("disappear once revoked", async () => {
      const { token: _, ...record } = (await under.evreg.tokens.create({ name: "n", scopes: ["read"] })).data;
      expect((await under.evreg.tokens.revoke(record.rowid)).data).toEqual(record);
      await refusal(under.evreg.tokens.revoke(record.rowid), "not_found");
      expect((await under.evreg.tokens.list()).data).not.toContainEqual(record);
    });

    it("are revoked by nobody else without admin", async () => {
      const { rowid } = (await under.evreg.tokens.create({ name: "n", scopes: ["read"] })).data;
      const other = await under.as(["read", "write", "publish", "admin:crm"]);
      await refusal(other.tokens.revoke(rowid), "forbidden");
    });

    it("show who a caller is, and what it may do", async () => {
      const { data } = await under.evreg.whoami();
      expect(data).toMatchObject({ scopes: ["admin"], expires_at: null });
      expect(data.data_id).toMatch(/^[0-9a-f]{32}$/);
      const scopes = ["publish:billing"];
      const narrow = await under.as(scopes);
      expect((await narrow.whoami()).data).toEqual({
        name: expect.stringMatching(/./),
        scopes,
        expires_at: null,
        data_id: data.data_id,
        retries: { max_retries: 5, retry_schedule: null },
      });
    });
  });
}

const MINUTE_MS = 60_000;

async function codeOf(evreg: Evreg): Promise<string> {
  const { code } = (await evreg.tokens.createCode()).data;
  if (code === null) throw new Error("a code is needed here");
  return code;
}

export function signInContract(open: OpenEvreg): void {
  describe("signing in by a code", () => {
    const under = useEvreg(open);
    const browserTokens = async () =>
      (await under.evreg.tokens.list()).data.filter(({ name }) => name === "browser");

    it("gives a token with the scopes of whoever made the code, for 12 hours", async () => {
      const scopes = ["publish:billing", "read"];
      const evreg = await under.as(scopes);
      const { data } = await evreg.tokens.createCode();
      expect(data).toEqual({
        code: expect.stringMatching(/^[0-9A-Za-z]{38}$/),
        expires_at: "2026-01-01T00:02:00.000Z",
      });
      const { token, ...record } = (await evreg.tokens.exchangeCode({ code: data.code! })).data;
      expect(token).toMatch(/^evreg_[0-9A-Za-z]{36}$/);
      expect(record).toMatchObject({ name: "browser", scopes, expires_at: "2026-01-01T12:00:00.000Z" });
      expect(await browserTokens()).toEqual([record]);
    });

    it("takes no scope to exchange a code, and any to make one", async () => {
      const code = await codeOf(await under.as(["publish:billing"]));
      const other = await under.as(["read:other"]);
      expect((await other.tokens.exchangeCode({ code })).data.scopes).toEqual(["publish:billing"]);
    });

    it("works once: a code that comes again ends the token that it gave", async () => {
      const code = await codeOf(under.evreg);
      await under.evreg.tokens.exchangeCode({ code });
      expect(await browserTokens()).toHaveLength(1);
      const error = await refusal(under.evreg.tokens.exchangeCode({ code }), "unauthorized");
      expect(error.message).toContain("used before");
      expect(await browserTokens()).toEqual([]);
      await refusal(under.evreg.tokens.exchangeCode({ code }), "unauthorized");
    });

    it("gives one token at most to callers at the same moment", async () => {
      const code = await codeOf(under.evreg);
      const calls = [1, 2, 3].map(() => under.evreg.tokens.exchangeCode({ code }));
      const given = (await Promise.allSettled(calls)).filter(({ status }) => status === "fulfilled");
      expect(given).toHaveLength(1);
      expect(await browserTokens()).toEqual([]);
    });

    it("ends two minutes after the code was made", async () => {
      const [early, late] = [await codeOf(under.evreg), await codeOf(under.evreg)];
      under.clock.pass(2 * MINUTE_MS - 1);
      await under.evreg.tokens.exchangeCode({ code: early });
      under.clock.pass(1);
      await refusal(under.evreg.tokens.exchangeCode({ code: late }), "unauthorized");
      expect(await browserTokens()).toHaveLength(1);
      // Where the clock was set back, nobody knows how old a code is.
      const ahead = await codeOf(under.evreg);
      under.clock.set(under.clock.now() - 1);
      await refusal(under.evreg.tokens.exchangeCode({ code: ahead }), "unauthorized");
    });

    it("refuses what is like a code", async () => {
      const code = await codeOf(under.evreg);
      for (const wrong of [code.slice(0, -1) + (code.endsWith("0") ? "1" : "0"), code.slice(0, 8), "x"]) {
        await refusal(under.evreg.tokens.exchangeCode({ code: wrong }), "unauthorized");
      }
    });

    it("makes 16 codes in two minutes for one caller, and lists none of them", async () => {
      const listed = async () => (await under.evreg.tokens.list()).data.map(({ rowid }) => rowid);
      const before = await listed();
      for (let made = 0; made < 16; made += 1) await codeOf(under.evreg);
      await refusal(under.evreg.tokens.createCode(), "rate_limited");
      expect(await listed()).toEqual(before);
      under.clock.pass(2 * MINUTE_MS);
      await codeOf(under.evreg);
    });

    it("is in the audit trail, under the name of whoever made the code", async () => {
      const { name } = (await under.evreg.whoami()).data;
      const code = await codeOf(under.evreg);
      const { rowid } = (await (await under.as(["read"])).tokens.exchangeCode({ code })).data;
      const { data } = await under.evreg.audit.list();
      expect(data.find(({ record_id }) => record_id === rowid)).toMatchObject({
        change: "token.created",
        name: "browser",
        by: name,
        members: [{ member: "scopes", before: null, after: "admin" }],
      });
      expect(JSON.stringify(data)).not.toContain(code.slice(8));
    });
  });
}
