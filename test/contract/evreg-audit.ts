import { describe, expect, it } from "vitest";
import type { AuditEntry } from "../../src/domain/audit.ts";
import {
  makeAny,
  newAction,
  newEvent,
  newSubscription,
  publish,
  refusal,
  subscribe,
  useEvreg,
  type OpenEvreg,
} from "./harness.ts";

const TOKEN_FORM = /evreg_[0-9A-Za-z]{36}|whsec_/;

export function auditContract(open: OpenEvreg): void {
  describe("the audit trail", () => {
    const under = useEvreg(open);
    const changes = async (): Promise<readonly AuditEntry[]> => (await under.evreg.audit.list()).data;

    it("tells who changed actions, subscriptions and tokens, newest first, and never a secret", async () => {
      const { evreg } = under;
      await evreg.actions.create(newAction());
      await evreg.actions.update("user.created", { compatibility: "none" });
      const { rowid: id, secret } = await subscribe(evreg);
      const bearer_token = "an-own-bearer-value";
      await evreg.subscriptions.update(id, { active: false, max_retries: 3, bearer_token });
      await evreg.subscriptions.update(id, {
        handler: "https://hooks.example.com/s3cret-path",
        bearer_token: "other",
      });
      const rotated = await evreg.subscriptions.rotateSecret(id);
      const { data: token } = await evreg.tokens.create({ name: "deploy", scopes: ["read"] });
      await evreg.tokens.revoke(token.rowid);
      const deleted = (await evreg.subscriptions.delete(id)).data;
      const name = `${deleted.application}/${deleted.subscription}#${deleted.action}`;
      const all = await changes();
      expect(all.slice(0, 9).map(({ change, record_id, name: what }) => [change, record_id, what])).toEqual([
        ["subscription.deleted", id, name],
        ["token.revoked", token.rowid, "deploy"],
        ["token.created", token.rowid, "deploy"],
        ["subscription.secret_rotated", id, name],
        ["subscription.updated", id, name],
        ["subscription.updated", id, name],
        ["subscription.created", id, name],
        ["action.updated", all[8]!.record_id, "user.created"],
        ["action.created", all[8]!.record_id, "user.created"],
      ]);
      expect(all[2]!.members).toEqual([{ member: "scopes", before: null, after: "read" }]);
      expect(all[5]!.members).toEqual([
        { member: "max_retries", before: 5, after: 3 },
        { member: "active", before: true, after: false },
        { member: "bearer", before: "secret", after: "own" },
      ]);
      expect(all[4]!.members).toEqual([
        { member: "handler", before: null, after: null },
        { member: "bearer_token", before: null, after: null },
      ]);
      expect(all[7]!.members).toEqual([{ member: "compatibility", before: "full", after: "none" }]);
      const text = JSON.stringify(all);
      for (const kept of [secret, rotated.data.secret, token.token, bearer_token, "s3cret-path"]) {
        expect(text).not.toContain(kept);
      }
      expect(text).not.toMatch(TOKEN_FORM);
    });

    it("keeps nothing of what changes nothing or was refused", async () => {
      const { evreg } = under;
      await evreg.actions.create(newAction());
      const { rowid: id } = await subscribe(evreg);
      const before = await changes();
      await evreg.subscriptions.update(id, {});
      await evreg.subscriptions.update(id, { max_retries: 5 });
      await refusal(evreg.subscriptions.create(newSubscription()), "conflict");
      await refusal(evreg.actions.create(newAction()), "conflict");
      await refusal(evreg.tokens.revoke(999_999), "not_found");
      await publish(evreg);
      expect(await changes()).toEqual(before);
    });

    it("tells of replays and skipped deliveries", async () => {
      const { evreg } = under;
      await evreg.actions.create(newAction());
      const { rowid: id } = await subscribe(evreg, { active: false });
      await publish(evreg, newEvent());
      const { data: replay } = await evreg.replays.start(id, { from: "2020-01-01T00:00:00Z", status: "all" });
      await evreg.replays.cancel(replay.rowid);
      await evreg.replays.cancel(replay.rowid);
      expect((await changes()).slice(0, 2).map(({ change, record_id }) => [change, record_id])).toEqual([
        ["replay.cancelled", replay.rowid],
        ["replay.started", replay.rowid],
      ]);
      expect((await changes())[1]!.members).toEqual([{ member: "selection", before: null, after: "all" }]);
    });

    it("is walked by pages and by time", async () => {
      const { evreg, clock } = under;
      const atMs = clock.now();
      for (const action of ["a", "b", "c"]) {
        await makeAny(under, action);
        await clock.advance(1_000);
      }
      const all = (await changes()).filter(({ change }) => change === "action.created");
      expect(all.map(({ name }) => name)).toEqual(["c", "b", "a"]);
      const after = await evreg.audit.list({ limit: 1, after: all[0]!.rowid });
      expect(after.data).toEqual([all[1]]);
      const to = new Date(atMs + 2_000).toISOString();
      const from = new Date(atMs + 1_000).toISOString();
      expect((await evreg.audit.list({ from, to })).data).toEqual([all[1]]);
      expect(await under.store.audit.removeExpired(atMs + 1_000)).toBeGreaterThan(0);
      expect((await evreg.audit.list({ limit: 2 })).data).toEqual(all.slice(0, 2));
      expect((await evreg.audit.list({ after: all[1]!.rowid })).data).toEqual([]);
    });
  });
}
