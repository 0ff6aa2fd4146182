import { beforeEach, describe, expect, it } from "vitest";
import type { EvregErrorCode } from "../../src/domain/error.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import {
  ANY_OBJECT,
  freshName,
  makeAny,
  newAction,
  newEvent,
  publish,
  refusal,
  subscribe,
  useSharedEvreg,
} from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

export function actionEndsContract(open: OpenEvreg): void {
  describe("deprecating and retiring actions", () => {
    const under = useSharedEvreg(open);
    let old: string;
    let next: string;
    let event: NewEvent;
    /** What is told of an action that came to its end now. */
    let told: { action: string; since: string; successor: string };
    beforeEach(async () => {
      old = freshName();
      next = `${old}.v2`;
      await makeAny(under, old, next);
      await under.clock.advance(1_234);
      event = newEvent({}, old);
      told = { action: old, since: new Date(under.clock.now()).toISOString(), successor: next };
    });

    it("tells publishers since when an action is deprecated, and what to use instead", async () => {
      expect(await under.evreg.events.publish(event)).not.toHaveProperty("meta");
      const { data } = await under.evreg.actions.update(old, { deprecated: true, successor: next });
      expect(data).toMatchObject({ deprecated: true, retired: false, successor: next, revision: 1 });
      expect((await under.evreg.actions.list({ application: data.application })).data).toContainEqual(data);
      expect(await under.evreg.events.publish(event)).toMatchObject({
        replayed: false,
        meta: { deprecated: [told] },
      });
      const keyed = { ...event, idempotency_key: "k" };
      await under.evreg.events.publish(keyed);
      expect(await under.evreg.events.publish(keyed)).toMatchObject({
        replayed: true,
        meta: { deprecated: [told] },
      });
      await under.clock.advance(60_000);
      await under.evreg.actions.update(old, { deprecated: true, compatibility: "none" });
      expect(await under.evreg.events.publish(event)).toMatchObject({ meta: { deprecated: [told] } });
    });

    it("needs no successor", async () => {
      await under.evreg.actions.update(old, { deprecated: true });
      const { meta } = await under.evreg.events.publish(event);
      expect(meta).toEqual({ deprecated: [{ ...told, successor: null }] });
    });

    it("lists the deprecated actions of a batch, each once", async () => {
      await under.evreg.actions.update(old, { deprecated: true, successor: next });
      const { meta } = await under.evreg.events.publishBatch([event, newEvent({}, next), event]);
      expect(meta).toEqual({ accepted: 3, rejected: 0, replayed: 0, deprecated: [told] });
      const other = await under.evreg.events.publishBatch([newEvent({}, next)]);
      expect(other.meta).not.toHaveProperty("deprecated");
    });

    it("undoing a deprecation removes the successor too", async () => {
      await under.evreg.actions.update(old, { deprecated: true, successor: next });
      const { data } = await under.evreg.actions.update(old, { deprecated: false });
      expect(data).toMatchObject({ deprecated: false, successor: null });
      expect(await under.evreg.events.publish(event)).not.toHaveProperty("meta");
    });

    it("refuses events of a retired action, and names the successor", async () => {
      await under.evreg.actions.update(old, { retired: true, successor: next });
      const error = await refusal(publish(under.evreg, event), "gone");
      expect(error.details).toMatchObject({ field: "action", value: old, successor: next });
      expect(error.message).toContain(next);
      const { data, errors } = await under.evreg.events.publishBatch([event, newEvent({}, next)]);
      expect(data.map((one) => one?.action ?? null)).toEqual([null, next]);
      expect(errors).toMatchObject([{ index: 0, code: 410, details: { successor: next } }]);
      const atomic = await under.evreg.events.publishBatch([newEvent({}, next), event], { atomic: true });
      expect(atomic.data).toEqual([null, null]);
    });

    it("refuses to check payloads of an action that takes no events", async () => {
      const { actions } = under.evreg;
      await actions.update(old, { retired: true });
      const refused = await refusal(
        actions.validate(old, RawJson.fromValue({ email: "ada@example.com" })),
        "gone",
      );
      expect(refused.message).toContain("takes no events any more");
      await refusal(actions.validate("evreg.subscription.deactivated", RawJson.fromValue({})), "invalid");
    });

    it("answers a retry of an event that was accepted before its action was retired", async () => {
      const keyed = { ...event, idempotency_key: "before" };
      const first = await publish(under.evreg, keyed);
      await under.evreg.actions.update(old, { retired: true });
      const again = await under.evreg.events.publish(keyed);
      expect(again).toMatchObject({ data: { rowid: first.rowid }, replayed: true });
      await refusal(publish(under.evreg, { ...keyed, idempotency_key: "after" }), "gone");
    });

    it("a retired action can still be read, subscribed to and revised", async () => {
      await subscribe(under.evreg, { action: old });
      const { rowid } = await publish(under.evreg, event);
      await under.evreg.actions.update(old, { retired: true });
      expect((await under.evreg.events.get(rowid)).data.action).toBe(old);
      expect((await under.evreg.events.deliveries(rowid)).data).toMatchObject([{ status: "pending" }]);
      await subscribe(under.evreg, { action: old, subscription: "later" });
      const { data } = await under.evreg.actions.update(old, { schemata: { ...ANY_OBJECT, title: "x" } });
      expect(data).toMatchObject({ revision: 2, retired: true });
    });

    it("undoing a retirement accepts events again", async () => {
      await under.evreg.actions.update(old, { retired: true });
      await refusal(publish(under.evreg, event), "gone");
      await under.evreg.actions.update(old, { retired: false });
      expect(await publish(under.evreg, event)).toMatchObject({ action: old });
    });

    it("stores no event after the answer that its action is retired", async () => {
      await publish(under.evreg, event);
      const attempt = () =>
        publish(under.evreg, event).then(
          () => "stored",
          (error: { code: string }) => error.code,
        );
      const before = Array.from({ length: 40 }, attempt);
      const retired = under.evreg.actions.update(old, { retired: true });
      const after = Array.from({ length: 40 }, attempt);
      await retired;
      const { total } = (await under.evreg.events.list({ action: old })).meta;
      const ends = await Promise.all([...before, ...after]);
      expect(ends.filter((end) => end !== "stored" && end !== "gone")).toEqual([]);
      expect((await under.evreg.events.list({ action: old })).meta.total).toBe(total);
      expect(total).toBe(1 + ends.filter((end) => end === "stored").length);
    });

    it("accepts as a successor another existing action, and none of evreg's own", async () => {
      const { actions } = under.evreg;
      const refuse = async (action: string, successor: string, code: EvregErrorCode) => {
        await refusal(actions.update(action, { deprecated: true, successor }), code, {
          field: "successor",
          value: successor,
        });
      };
      await refusal(actions.update(old, { successor: next }), "invalid", { field: "successor" });
      await refuse(old, old, "invalid");
      await refuse(old, "a b", "invalid");
      await refuse(old, "nobody", "not_found");
      await refuse(old, "evreg.delivery.failed", "invalid");
      expect((await actions.get(old)).data).toMatchObject({ deprecated: false, successor: null });
    });

    it("names the successor that was set, also when that one is retired later", async () => {
      const { actions } = under.evreg;
      const third = freshName();
      await actions.create(newAction({ action: third }));
      await actions.update(old, { retired: true, successor: next });
      const instead = async () => (await refusal(publish(under.evreg, event), "gone")).details["successor"];
      expect(await instead()).toBe(next);
      await actions.update(next, { retired: true, successor: old });
      expect(await instead()).toBe(next);
      await actions.update(old, { successor: third });
      expect(await instead()).toBe(third);
    });

    it("hides a successor from callers who may not read it", async () => {
      await under.evreg.actions.create(newAction({ action: "shop.a", application: "shop" }));
      const { actions } = await under.as(["write:crm", "read:crm"]);
      await refusal(actions.update(old, { deprecated: true, successor: "shop.a" }), "not_found");
      expect((await actions.update(old, { deprecated: true, successor: next })).data.successor).toBe(next);
    });

    it("accepts a whole action as it was read, with its state", async () => {
      const { data } = await under.evreg.actions.update(old, { deprecated: true, successor: next });
      expect((await under.evreg.actions.update(old, data)).data).toEqual(data);
    });
  });
}
