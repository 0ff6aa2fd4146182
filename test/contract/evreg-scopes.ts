import { describe, expect, it } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import type { Scope } from "../../src/domain/token.ts";
import type { Evreg } from "../../src/evreg.ts";
import {
  ANY_OBJECT,
  newAction,
  newEvent,
  publish,
  refusal,
  subscribe,
  useEvreg,
  useSharedEvreg,
} from "./harness.ts";
import type { EvregUnderTest, OpenEvreg } from "./harness.ts";

type Call = (evreg: Evreg) => Promise<unknown>;

/** The first subscription of shop. */
const SHOP = 3;
const REPLAYED = { from: "2025-01-01T00:00:00Z", status: "all" } as const;
const schemata = { ...ANY_OBJECT, title: "next" };

/** Every call of the port that needs a scope, by the scope it needs. */
const CALLS: readonly (readonly [Scope, string, Call])[] = [
  ["read", "actions.list", (e) => e.actions.list()],
  ["read", "actions.get", (e) => e.actions.get("crm.a")],
  ["read", "actions.revisions", (e) => e.actions.revisions("crm.a")],
  ["read", "actions.revision", (e) => e.actions.revision("crm.a", 1)],
  ["read", "actions.check", (e) => e.actions.check("crm.a", { schemata, replay: 1 })],
  ["read", "actions.sample", (e) => e.actions.sample("crm.a")],
  ["read", "actions.types", (e) => e.actions.types("crm.a")],
  ["write", "actions.create", (e) => e.actions.create(newAction({ action: "crm.new" }))],
  ["write", "actions.update", (e) => e.actions.update("crm.a", { schemata })],
  ["publish", "events.publish", (e) => e.events.publish(newEvent({}, "crm.a"))],
  ["publish", "events.publishBatch", (e) => e.events.publishBatch([newEvent({}, "crm.a")])],
  ["read", "events.list", (e) => e.events.list()],
  ["read", "events.get", (e) => e.events.get(1)],
  ["read", "events.deliveries", (e) => e.events.deliveries(1)],
  ["read", "subscriptions.list", (e) => e.subscriptions.list()],
  ["read", "subscriptions.get", (e) => e.subscriptions.get(1)],
  ["read", "subscriptions.attempts", (e) => e.subscriptions.attempts(1)],
  [
    "write",
    "subscriptions.create",
    (e) => subscribe(e, { application: "crm", action: "crm.a", subscription: "x" }),
  ],
  ["write", "subscriptions.update", (e) => e.subscriptions.update(1, { max_retries: 1 })],
  ["write", "subscriptions.rotateSecret", (e) => e.subscriptions.rotateSecret(1)],
  ["write", "subscriptions.delete", (e) => e.subscriptions.delete(1)],
  ["read", "deliveries.list", (e) => e.deliveries.list()],
  ["read", "deliveries.get", (e) => e.deliveries.get(1)],
  ["write", "deliveries.retry", (e) => reached(e.deliveries.retry(1))],
  ["write", "deliveries.skip", (e) => reached(e.deliveries.skip(1))],
  ["write", "replays.count", (e) => e.replays.count(2, REPLAYED)],
  ["write", "replays.start", (e) => e.replays.start(2, REPLAYED)],
  ["write", "replays.cancel", (e) => e.replays.cancel(1)],
  ["read", "replays.list", (e) => e.replays.list()],
  ["read", "attention", (e) => e.attention()],
  ["read", "stats", (e) => e.stats()],
  ["read", "stream", async (e) => [await (await e.stream()).close()]],
  ["admin", "audit.list", (e) => e.audit.list()],
  ["admin", "doctor", (e) => e.doctor()],
  ["admin", "nodes", (e) => e.nodes()],
  ["admin", "tokens.list", (e) => e.tokens.list()],
  ["admin", "backup", async (e) => [await (await e.backup()).close()]],
  ["admin", "tokens.create", (e) => e.tokens.create({ name: "n", scopes: ["read"] })],
];

/** It cannot be done with a delivery that is pending, which only those who might do it get to know. */
async function reached(call: Promise<unknown>): Promise<"reached"> {
  await call.catch((error: unknown) => {
    if (!(error instanceof EvregError && error.code === "conflict")) throw error;
  });
  return "reached";
}

/** Action `crm.a` of crm and `shop.a` of shop; each application subscribes to both; one event of each action. */
async function prepare({ evreg }: EvregUnderTest): Promise<void> {
  for (const application of ["crm", "shop"]) {
    const action = `${application}.a`;
    await evreg.actions.create(newAction({ action, application, schemata: ANY_OBJECT }));
  }
  for (const application of ["crm", "shop"]) {
    for (const action of ["crm.a", "shop.a"]) await subscribe(evreg, { application, action });
  }
  await publish(evreg, newEvent({}, "crm.a"));
  await publish(evreg, newEvent({}, "shop.a"));
}

export function scopesContract(open: OpenEvreg): void {
  describe("scopes", () => {
    const under = useEvreg(open, prepare);

    it.each([
      ["read"],
      ["write"],
      ["publish"],
      ["admin"],
      ["read:crm", "write:crm", "publish:crm"],
      ["admin:crm"],
    ])("%s allows what needs it", async (...scopes) => {
      const evreg = await under.as(scopes);
      const isEnough = (needed: Scope): boolean =>
        scopes.some((scope) => scope.startsWith(needed) || (scope.startsWith("admin") && needed !== "admin"));
      for (const [needed, , call] of CALLS) {
        if (!isEnough(needed) || (needed === "admin" && scopes[0] !== "admin")) continue;
        await expect(call(evreg)).resolves.toBeDefined();
      }
    });

    it("publish only for the application", async () => {
      const evreg = await under.as(["publish:crm"]);
      await refusal(publish(evreg, newEvent({}, "shop.a")), "forbidden");
      const items = [newEvent({}, "crm.a"), newEvent({}, "shop.a"), newEvent({}, "unknown")];
      const { data, errors } = await evreg.events.publishBatch(items);
      expect(data.map((event) => event?.action ?? null)).toEqual(["crm.a", null, null]);
      expect(errors.map(({ code }) => code)).toEqual([403, 404]);
      expect(errors[0]?.error).toMatch(
        /^The action shop\.a needs the scope publish for the application it belongs to; .+ holds only publish:crm\./,
      );
      expect((await under.evreg.events.list({ action: "shop.a" })).meta.total).toBe(1);
    });

    it("are named, with those that are held, where an event is refused, whether or not its action exists", async () => {
      const evreg = await under.as(["read:shop"]);
      for (const action of ["shop.a", "unknown"]) {
        const { message } = await refusal(publish(evreg, newEvent({}, action)), "forbidden");
        expect(message).toContain(`The action ${action} needs the scope publish; `);
        expect(message).toContain(" holds only read:shop. ");
      }
    });

    it("move an action where both applications are written", async () => {
      const both = await under.as(["write:crm", "write:shop"]);
      const { data } = await both.actions.update("crm.a", { schemata, application: "shop" });
      expect(data.application).toBe("shop");
    });

    it("breaking an action needs admin", async () => {
      const none = { compatibility: "none" } as const;
      const breaking = { schemata: { ...ANY_OBJECT, required: ["x"] } };
      const writer = await under.as(["write", "read", "admin:shop"]);
      const error = await refusal(writer.actions.update("crm.a", breaking, none), "forbidden");
      expect(error.details).toEqual({ scope: "admin:crm" });
      const admin = await under.as(["admin:crm"]);
      expect((await admin.actions.update("crm.a", breaking, none)).data.revision).toBe(2);
    });

    it("subscribe only to what one may read or write", async () => {
      const writer = await under.as(["write:crm"]);
      const input = { application: "crm", subscription: "x", action: "shop.a" };
      const unseen = await refusal(subscribe(writer, input), "not_found");
      expect(unseen.details).toMatchObject({ field: "action" });
      await refusal(writer.subscriptions.update(1, { action: "shop.a" }), "not_found");
      const reader = await under.as(["write:crm", "read:shop"]);
      expect(await subscribe(reader, input)).toMatchObject({ action: "shop.a" });
    });
  });

  describe("scopes for reading and refusals", () => {
    const under = useSharedEvreg(open, prepare);

    it.each(CALLS)("%s is needed to do %s", async (scope, _, call) => {
      const others = ["publish", "read", "write"].filter((name) => name !== scope);
      const { details, message } = await refusal(call(await under.as(others)), "forbidden");
      expect(details).toEqual({ scope });
      expect(message).toContain(scope);
    });

    it.each(CALLS.filter(([scope]) => scope === "admin"))(
      "%s for one application is too little for %s",
      async (_scope, _, call) => {
        await refusal(call(await under.as(["admin:crm"])), "forbidden");
      },
    );

    it.each([["read:crm"], ["admin:crm"], ["read:crm", "write", "publish"]])(
      "%s limits what is listed",
      async (...scopes) => {
        const { actions, events, subscriptions, deliveries } = await under.as(scopes);
        expect((await actions.list()).data.map(({ action }) => action)).toEqual(["crm.a"]);
        expect((await actions.list({ application: "shop" })).data).toEqual([]);
        const listed = await events.list();
        expect(listed.data.map(({ rowid }) => rowid)).toEqual([1]);
        expect(listed.meta.total).toBe(1);
        expect((await events.list({ action: "shop.a" })).meta.total).toBe(0);
        const own = (await subscriptions.list()).data;
        expect(own.map(({ application, action }) => [application, action])).toEqual([
          ["crm", "crm.a"],
          ["crm", "shop.a"],
        ]);
        const sent = (await deliveries.list()).data;
        expect(sent.map(({ application, event_id }) => [application, event_id])).toEqual([
          ["crm", 2],
          ["crm", 1],
        ]);
        expect((await events.deliveries(1)).data).toMatchObject([{ application: "crm" }]);
      },
    );

    it("several limited scopes add up", async () => {
      const { actions } = await under.as(["read:crm", "read:shop"]);
      expect((await actions.list()).data.map(({ action }) => action)).toEqual(["crm.a", "shop.a"]);
    });

    it("of one application reach nothing of another's", async () => {
      const own = await under.as(["read:crm", "write:crm", "publish:crm"]);
      const all = (await under.evreg.deliveries.list()).data;
      const { rowid: delivery } = all.find(({ application }) => application === "shop")!;
      const { rowid: replay } = (await under.evreg.replays.start(SHOP, REPLAYED)).data;
      const { actions, events, subscriptions, deliveries, replays } = own;
      for (const read of [
        () => actions.get("shop.a"),
        () => actions.revisions("shop.a"),
        () => actions.revision("shop.a", 1),
        () => actions.check("shop.a", { schemata: ANY_OBJECT }),
        () => events.get(2),
        () => events.deliveries(2),
        () => subscriptions.get(SHOP),
        () => subscriptions.attempts(SHOP),
        () => deliveries.get(delivery),
        () => replays.get(replay),
      ]) {
        await refusal(read(), "not_found");
      }
      expect((await replays.list()).data).toEqual([]);
      const foreign = { application: "shop", subscription: "x", action: "crm.a" };
      for (const change of [
        () => actions.create(newAction({ action: "x", application: "shop" })),
        () => actions.update("shop.a", { schemata }),
        () => actions.update("shop.a", { schemata, application: "crm" }),
        () => actions.update("crm.a", { schemata, application: "shop" }),
        () => subscribe(own, foreign),
        () => subscriptions.update(SHOP, { active: false }),
        () => subscriptions.rotateSecret(SHOP),
        () => subscriptions.delete(SHOP),
        () => deliveries.retry(delivery),
        () => deliveries.skip(delivery),
        () => replays.count(SHOP, REPLAYED),
        () => replays.start(SHOP, REPLAYED),
        () => replays.cancel(replay),
      ]) {
        await refusal(change(), "forbidden");
      }
    });

    it("a refusal does not say whose a record is", async () => {
      const error = await refusal(
        publish(await under.as(["publish:crm"]), newEvent({}, "shop.a")),
        "forbidden",
      );
      expect(JSON.stringify(error.body())).not.toMatch(/shop(?!\.a)/);
      const reader = await under.as(["publish:crm", "read"]);
      const told = await refusal(publish(reader, newEvent({}, "shop.a")), "forbidden");
      expect(told.details).toEqual({ scope: "publish:shop" });
      expect(told.message).toMatch(/^The action shop\.a needs the scope publish:shop; /);
      const many = await under.as(["a", "b", "c", "d"].map((name) => `publish:${name}`));
      const { message } = await refusal(publish(many, newEvent({}, "shop.a")), "forbidden");
      expect(message).toContain("holds only publish:a, publish:b, publish:c and 1 more.");
    });

    it("a refusal does not say who owns a name that is taken", async () => {
      const input = newAction({ action: "shop.a", application: "crm" });
      const error = await refusal((await under.as(["write:crm"])).actions.create(input), "conflict");
      expect(JSON.stringify(error.body())).not.toMatch(/shop(?!\.a)/);
      expect(error.details).toMatchObject({ field: "action", value: "shop.a" });
    });

    it("without scopes nothing is allowed", async () => {
      const nobody = await under.as(["admin:unrelated"]);
      expect((await nobody.actions.list()).data).toEqual([]);
      expect((await nobody.events.list()).meta.total).toBe(0);
    });
  });
}
