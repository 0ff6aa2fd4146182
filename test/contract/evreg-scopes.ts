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

type Call = (evreg: Evreg, which: never) => Promise<unknown>;

/** Records of one kind by what calls name them: one of crm, one of shop, and none. */
interface Named {
  readonly own: string | number;
  readonly foreign: string | number;
  readonly missing: readonly (string | number)[];
}

const ROWID = { own: 1, missing: [999] };
const NO_ROWIDS = [0, -1, 1.5, Number.NaN, 2 ** 53];
const APPLICATION: Named = { own: "crm", foreign: "shop", missing: [] };
const ACTION: Named = {
  own: "crm.a",
  foreign: "shop.a",
  missing: ["nothing.here", "with space", "a/b", "ä", "%2e"],
};
const EVENT: Named = { ...ROWID, foreign: 2 };
const SUBSCRIPTION: Named = { ...ROWID, foreign: 3 };
const DELIVERY: Named = { ...ROWID, foreign: 2 };
const REPLAY: Named = { ...ROWID, own: 2, foreign: 1 };

const REPLAYED = { from: "2025-01-01T00:00:00Z", status: "all" } as const;
const schemata = { ...ANY_OBJECT, title: "next" };

/** Every call of the port that needs one scope, with what it is asked of. */
const ROWS: readonly (readonly [Scope, string, Call, Named?])[] = [
  ["read", "actions.list", (e) => e.actions.list()],
  ["read", "actions.get", (e, name) => e.actions.get(name), ACTION],
  ["read", "actions.revisions", (e, name) => e.actions.revisions(name), ACTION],
  ["read", "actions.revision", (e, name) => e.actions.revision(name, 1), ACTION],
  ["read", "actions.check", (e, name) => e.actions.check(name, { schemata, replay: 1 }), ACTION],
  ["read", "actions.sample", (e, name) => e.actions.sample(name), ACTION],
  [
    "write",
    "actions.create",
    (e, application) => e.actions.create(newAction({ action: "new", application })),
    APPLICATION,
  ],
  ["write", "actions.update", (e, name) => e.actions.update(name, { schemata }), ACTION],
  ["publish", "events.publish", (e) => e.events.publish(newEvent({}, "crm.a"))],
  ["publish", "events.publishBatch", (e) => e.events.publishBatch([newEvent({}, "crm.a")])],
  ["read", "events.list", (e) => e.events.list()],
  ["read", "events.get", (e, id) => e.events.get(id), EVENT],
  ["read", "events.deliveries", (e, id) => e.events.deliveries(id), EVENT],
  ["read", "subscriptions.list", (e) => e.subscriptions.list()],
  ["read", "subscriptions.get", (e, id) => e.subscriptions.get(id), SUBSCRIPTION],
  ["read", "subscriptions.attempts", (e, id) => e.subscriptions.attempts(id), SUBSCRIPTION],
  [
    "write",
    "subscriptions.create",
    (e, application) => subscribe(e, { application, action: "crm.a", subscription: "x" }),
    APPLICATION,
  ],
  ["write", "subscriptions.update", (e, id) => e.subscriptions.update(id, { max_retries: 1 }), SUBSCRIPTION],
  ["write", "subscriptions.rotateSecret", (e, id) => e.subscriptions.rotateSecret(id), SUBSCRIPTION],
  ["write", "subscriptions.delete", (e, id) => e.subscriptions.delete(id), SUBSCRIPTION],
  ["read", "deliveries.list", (e) => e.deliveries.list()],
  ["read", "deliveries.get", (e, id) => e.deliveries.get(id), DELIVERY],
  ["write", "deliveries.retry", (e, id) => reached(e.deliveries.retry(id)), DELIVERY],
  ["write", "deliveries.skip", (e, id) => reached(e.deliveries.skip(id)), DELIVERY],
  ["write", "replays.count", (e, id) => e.replays.count(id, REPLAYED), { ...SUBSCRIPTION, own: 2 }],
  ["write", "replays.start", (e, id) => e.replays.start(id, REPLAYED), { ...SUBSCRIPTION, own: 2 }],
  ["write", "replays.cancel", (e, id) => e.replays.cancel(id), REPLAY],
  ["read", "replays.get", (e, id) => e.replays.get(id), REPLAY],
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
const CALLS = ROWS.map(([scope, name, call, record]) => ({ scope, name, call, record }));

/** What further calls are asked of a record. */
const OTHER_CALLS: readonly (readonly [Call, Named])[] = [
  [(e, number) => e.actions.revision("crm.a", number), SUBSCRIPTION],
  [(e, name) => e.actions.validate(name, newEvent().payload), ACTION],
  [(e, id) => e.subscriptions.test(id, newEvent()), SUBSCRIPTION],
  [(e, id) => e.subscriptions.claim(id), SUBSCRIPTION],
  [(e, id) => e.tokens.revoke(id), SUBSCRIPTION],
];

/** It cannot be done with a delivery that is pending, which only those who might do it get to know. */
async function reached(call: Promise<unknown>): Promise<"reached"> {
  await call.catch((error: unknown) => {
    if (!(error instanceof EvregError && error.code === "conflict")) throw error;
  });
  return "reached";
}

/** Action `crm.a` of crm and `shop.a` of shop; each application subscribes to both; one event of each action, and a replay of each. */
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
  for (const subscription of [SUBSCRIPTION.foreign, SUBSCRIPTION.own]) {
    await evreg.replays.start(subscription as number, REPLAYED);
  }
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
      for (const { scope: needed, call, record } of CALLS) {
        if (!isEnough(needed) || (needed === "admin" && scopes[0] !== "admin")) continue;
        await expect(call(evreg, record?.own as never)).resolves.toBeDefined();
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
      await refusal(subscribe(writer, input), "not_found", { field: "action" });
      await refusal(writer.subscriptions.update(1, { action: "shop.a" }), "not_found");
      const reader = await under.as(["write:crm", "read:shop"]);
      expect(await subscribe(reader, input)).toMatchObject({ action: "shop.a" });
    });
  });

  describe("scopes for reading and refusals", () => {
    const under = useSharedEvreg(open, prepare);

    it.each(CALLS)("$scope is needed to do $name", async ({ scope, call, record }) => {
      const others = ["publish", "read", "write"].filter((name) => name !== scope);
      const { details, message } = await refusal(
        call(await under.as(others), record?.own as never),
        "forbidden",
      );
      expect(details).toEqual({ scope });
      expect(message).toContain(scope);
    });

    it.each(CALLS.filter(({ scope }) => scope === "admin"))(
      "$scope for one application is too little for $name",
      async ({ call }) => {
        await refusal(call(await under.as(["admin:crm"]), undefined as never), "forbidden");
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
      for (const { scope, call, record } of CALLS) {
        if (record === undefined) continue;
        await refusal(call(own, record.foreign as never), scope === "read" ? "not_found" : "forbidden");
      }
      expect((await own.replays.list()).data.map(({ rowid }) => rowid)).toEqual([REPLAY.own]);
      for (const [action, application] of [
        ["shop.a", "crm"],
        ["crm.a", "shop"],
      ] as const) {
        await refusal(own.actions.update(action, { schemata, application }), "forbidden");
      }
    });

    it("to listen shows the pull subscriptions of the application", async () => {
      const pull = async (application: string): Promise<number> => {
        const input = { application, subscription: "pulled", action: "crm.a", mode: "pull" } as const;
        return (await under.evreg.subscriptions.create(input)).data.rowid;
      };
      const [own, foreign] = [await pull("crm"), await pull("shop")];
      const { subscriptions } = await under.as(["listen:crm"]);
      expect((await subscriptions.get(own)).data).toMatchObject({ rowid: own, application: "crm" });
      for (const id of [foreign, SUBSCRIPTION.own as number]) {
        await refusal(subscriptions.get(id), "forbidden");
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
  });

  describe("what is asked of a record", () => {
    const under = useSharedEvreg(open, prepare);
    const all = [...CALLS.map(({ call, record }) => [call, record] as const), ...OTHER_CALLS];

    it("is refused for a rowid that is none, and finds nothing where the record is not there", async () => {
      for (const [call, record] of all) {
        if (typeof record?.own === "number") {
          for (const rowid of NO_ROWIDS) await refusal(call(under.evreg, rowid as never), "malformed");
        }
        for (const which of record?.missing ?? []) {
          await refusal(call(under.evreg, which as never), "not_found");
        }
      }
      await refusal(under.evreg.actions.get("."), "not_found");
    });
  });
}
