import { describe, expect, it } from "vitest";
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
} from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

export function serviceEventsContract(open: OpenEvreg): void {
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
