import { describe, expect, it } from "vitest";
import type { AuditEntry } from "../../src/domain/audit.ts";
import { SERVICE_EVENT_NAMES, SERVICE_EVENT_SCHEMAS } from "../../src/domain/service-events.ts";
import {
  ANY_OBJECT,
  claimDue,
  finishNow,
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

  describe("service events", () => {
    const under = useEvreg(open);
    const failed = "evreg.delivery.failed";

    it("have actions that exist from the start, and that nobody can create, change or publish", async () => {
      const { actions, events } = under.evreg;
      for (const name of SERVICE_EVENT_NAMES) {
        expect((await actions.get(name)).data).toMatchObject({
          application: "evreg",
          schemata: SERVICE_EVENT_SCHEMAS[name],
          revision: 1,
        });
        const update = () => actions.update(name, { schemata: ANY_OBJECT }, { compatibility: "none" });
        const send = () => events.publish(newEvent({}, name));
        for (const call of [update, send]) {
          const { message, details } = await refusal(call(), "invalid");
          expect(message).toMatch(/tells of evreg itself and cannot be (changed|published) by anybody/);
          expect(details).toMatchObject({ field: "action", value: name });
        }
        expect((await actions.get(name)).data.revision).toBe(1);
      }
      for (const action of [failed, "evreg.mine", "evreg.delivery.failed.v2"]) {
        const { message, details } = await refusal(actions.create(newAction({ action })), "invalid");
        expect(message).toContain("must not begin with evreg.");
        expect(details).toMatchObject({ field: "action", value: action });
      }
      await actions.create(newAction({ action: "evregs.fine" }));
      await actions.create(newAction({ action: "evreg" }));
      expect((await events.list()).data).toEqual([]);
    });

    it("are refused as an item of a batch, with the others accepted", async () => {
      await makeAny(under, "user.created");
      const { data, errors } = await under.evreg.events.publishBatch([newEvent({}), newEvent({}, failed)]);
      expect(data).toMatchObject([{ action: "user.created" }, null]);
      expect(errors).toMatchObject([{ index: 1, code: 422, details: { field: "action", value: failed } }]);
    });

    it("can be read and subscribed to by callers who may read or write evreg's own", async () => {
      const other = await under.as(["read:crm", "write:crm"]);
      const input = newSubscription({ application: "crm", action: failed });
      await refusal(other.actions.get(failed), "not_found");
      await refusal(other.subscriptions.create(input), "not_found");
      const operator = await under.as(["read:evreg", "write:crm"]);
      expect((await operator.actions.list()).data).toHaveLength(SERVICE_EVENT_NAMES.length);
      expect((await operator.subscriptions.create(input)).data).toMatchObject({
        action: failed,
        active: true,
      });
    });

    it("are listed with their payload once a delivery has failed, and are delivered to subscribers", async () => {
      const { evreg, clock } = under;
      await makeAny(under, "user.created");
      const handler = "https://hooks.example.com:8443/services/SECRET?key=SECRET";
      await subscribe(evreg, { handler, max_retries: 0 });
      const operator = await subscribe(evreg, { application: "ops", action: failed });
      const { rowid: event_id } = await publish(evreg, newEvent({}));
      const [claim] = await claimDue(under);
      await clock.advance(1_000);
      await finishNow(under, claim!, "failed", { errorCode: "timeout" });
      const { data } = await evreg.events.list({ action: failed });
      expect(data).toHaveLength(1);
      expect(data[0]?.revision).toBe(1);
      const text = Buffer.from(data[0]!.payload.bytes).toString();
      expect(JSON.parse(text)).toEqual({
        delivery_id: claim!.deliveryId,
        event_id,
        subscription_id: 1,
        application: "billing",
        subscription: "invoices",
        action: "user.created",
        handler_host: "hooks.example.com:8443",
        attempts: 1,
        last_error: "timeout",
        published_at: "2026-01-01T00:00:00.000Z",
        failed_at: "2026-01-01T00:00:01.000Z",
      });
      expect(text).not.toContain("SECRET");
      expect((await evreg.events.deliveries(data[0]!.rowid)).data).toMatchObject([
        { subscription_id: operator.rowid, status: "pending" },
      ]);
    });
  });
}
