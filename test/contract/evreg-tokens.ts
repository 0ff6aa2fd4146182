import { describe, expect, it } from "vitest";
import { isTokenForm } from "../../src/domain/token-secret.ts";
import { refusal, useSharedEvreg, type OpenEvreg } from "./harness.ts";

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
