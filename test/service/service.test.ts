import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ANY_OBJECT, newAction, newEvent, publish, refusal, subscribe } from "../contract/harness.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { HandlerTest } from "../../src/domain/webhook.ts";
import type { Evreg } from "../../src/evreg.ts";
import type { Store } from "../../src/store/store.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { turnsDuring } from "../support/turns.ts";

let local: LocalService;
let real: Store;
/** What the store does instead, for one test. */
let instead: { [P in "catalog" | "events"]?: Partial<Store[P]> };

/** What a test of a handler comes to. */
let tested: HandlerTest | undefined;

function unavailable(): Promise<never> {
  return Promise.reject(new EvregError("unavailable", "The disk is full."));
}

beforeEach(async () => {
  instead = {};
  local = await openLocalService({
    tested: () => tested,
    around(store) {
      real = store;
      const port = <P extends "catalog" | "events">(name: P): Store[P] =>
        new Proxy(store[name], {
          get: (target, method): unknown =>
            Reflect.get(instead[name] ?? {}, method) ?? Reflect.get(target, method),
        });
      return { ...store, catalog: port("catalog"), events: port("events") };
    },
  });
  await local.evreg.actions.create(newAction());
});
afterEach(() => local.close());

describe("waking the engine", () => {
  it("happens exactly when a delivery may be due", async () => {
    await publish(local.evreg);
    await local.evreg.events.publishBatch([newEvent()]);
    expect(local.wakes()).toBe(0);
    await subscribe(local.evreg);
    expect(local.wakes()).toBe(0);
    await publish(local.evreg, { ...newEvent(), idempotency_key: "k" });
    expect(local.wakes()).toBe(1);
    await publish(local.evreg, { ...newEvent(), idempotency_key: "k" });
    expect(local.wakes()).toBe(1);
    await local.evreg.events.publishBatch([newEvent(), newEvent()]);
    expect(local.wakes()).toBe(2);
  });

  it("happens at each change of a subscription, as claimed deliveries depend on it", async () => {
    const { rowid } = await subscribe(local.evreg);
    const { subscriptions } = local.evreg;
    await subscriptions.update(rowid, {});
    expect(local.wakes()).toBe(0);
    await subscriptions.update(rowid, { active: false });
    await subscriptions.update(rowid, { active: true });
    await subscriptions.rotateSecret(rowid);
    await subscriptions.delete(rowid);
    expect(local.wakes()).toBe(4);
  });
});

describe("a schema that changes under a publish", () => {
  it("is loaded again, once for all concurrent publishes", async () => {
    await publish(local.evreg);
    const stored = (await local.store.catalog.findAction("user.created"))!;
    // Behind the service's back, as another node of a later store could.
    const revision = { action: "user.created", schemata: ANY_OBJECT, expectedVersion: stored.version };
    await local.store.catalog.reviseAction(revision, local.clock.now());
    let loads = 0;
    instead = {
      catalog: {
        findAction(name) {
          loads += 1;
          return real.catalog.findAction(name);
        },
      },
    };
    const events = await Promise.all(Array.from({ length: 20 }, () => publish(local.evreg)));
    expect(new Set(events.map((event) => event.revision))).toEqual(new Set([2]));
    expect(loads).toBe(1);
  });

  it("is given up when it never stops changing", async () => {
    instead = {
      events: { record: (batch) => Promise.resolve(batch.map(() => ({ kind: "stale" }) as const)) },
    };
    await refusal(publish(local.evreg), "unavailable");
    const { data, errors } = await local.evreg.events.publishBatch([newEvent(), newEvent()]);
    expect(data).toEqual([null, null]);
    expect(errors.map(({ index, code }) => [index, code])).toEqual([
      [0, 503],
      [1, 503],
    ]);
  });
});

describe("a store that cannot commit", () => {
  it("does not hide what was stored of a batch before", async () => {
    await local.evreg.actions.create(newAction({ action: "any", schemata: ANY_OBJECT }));
    let calls = 0;
    instead = {
      events: {
        async record(batch, nowMs, options) {
          calls += 1;
          if (calls > 1) return unavailable();
          const [first] = await real.events.record([batch[0]!], nowMs, options);
          return [first!, { kind: "stale" }];
        },
      },
    };
    const { data, errors, meta } = await local.evreg.events.publishBatch([newEvent(), newEvent({}, "any")]);
    expect(data.map((event) => event?.rowid ?? null)).toEqual([1, null]);
    expect(errors).toMatchObject([{ index: 1, code: 503 }]);
    expect(meta).toEqual({ accepted: 1, rejected: 1, replayed: 0 });
  });
});

describe("an unexpected error", () => {
  it("is an internal error that hides its cause", async () => {
    const cause = new TypeError("secret detail");
    instead = { events: { find: () => Promise.reject(cause) } };
    const error = await refusal(local.evreg.events.get(1), "internal");
    expect(error.cause).toBe(cause);
    expect(JSON.stringify(error.body())).not.toContain("secret");
  });
});

describe("a test of a handler", () => {
  it("shows why an address was refused to callers who may do everything", async () => {
    const refused = "Deliveries to 10.0.0.1 are not allowed: it is private.";
    tested = { outcome: "failed", error_code: "address_refused", refusal: refused } as HandlerTest;
    const { rowid } = await subscribe(local.evreg);
    const why = async ({ subscriptions }: Evreg) =>
      (await subscriptions.test(rowid, newEvent())).data.refusal;
    expect(await why(local.evreg)).toBe(refused);
    expect(await why(await local.as(["read", "write", "admin:billing"]))).toBeNull();
  });
});

describe("a large batch", () => {
  it("lets other work run", async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`p${n}`, { type: "string", format: "email" }]),
    );
    await local.evreg.actions.create(newAction({ action: "wide", schemata: { type: "object", properties } }));
    const payload = Object.fromEntries(Object.keys(properties).map((name) => [name, "somebody@example.com"]));
    const items = Array.from({ length: 1_000 }, () => newEvent(payload, "wide"));
    let turnsBeforeStoring = 0;
    await turnsDuring(async (soFar) => {
      instead = {
        events: {
          record(batch, nowMs, options) {
            turnsBeforeStoring = soFar();
            return real.events.record(batch, nowMs, options);
          },
        },
      };
      expect((await local.evreg.events.publishBatch(items)).meta.accepted).toBe(1_000);
    });
    expect(turnsBeforeStoring).toBeGreaterThan(1);
  });
});
