import * as fc from "fast-check";
import { expect } from "vitest";
import { RawJson } from "../../src/json/raw-json.ts";
import { DELIVERY_TRANSITIONS } from "../../src/domain/delivery.ts";
import { toIso } from "../../src/runtime/clock.ts";
import { claimRequest } from "../support/claim-request.ts";
import type { LocalService } from "../support/local-service.ts";
import { agree } from "./model-agrees.ts";
import { finish, type Model, type ModelAction, type ModelSubscription, statusOf } from "./model.ts";

/** One run has names of its own, as many share a store. */
export interface Real extends LocalService {
  readonly run: number;
}

type Act = (model: Model, real: Real) => Promise<void>;
type Step = fc.AsyncCommand<Model, Real>;

const LEASE_MS = 3_000;
/** An attempt that was cut short, or never begun, has none, nor has a delivery that was excluded. */
const STATUS_CODES: Readonly<Record<string, number>> = { delivered: 200, failed: 503, gone: 410 };

/** All lists are held to the model after every so manieth step: reading them takes far longer than a step does. */
const AGREE_EVERY = 4;
let steps = 0;

function step(name: string, act: Act): Step {
  return {
    check: () => true,
    async run(model, real) {
      const before = model.deliveries.map((delivery) => ({ delivery, from: statusOf(delivery) }));
      await act(model, real);
      for (const { delivery, from } of before) {
        const to = statusOf(delivery);
        if (to !== from) expect(DELIVERY_TRANSITIONS).toContainEqual([from, to, expect.anything()]);
      }
      steps += 1;
      if (steps % AGREE_EVERY === 0) await agree(model, real, steps / AGREE_EVERY);
    },
    toString: () => name,
  };
}

function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % list.length];
}

const refusedAs = (code: string): unknown => expect.objectContaining({ code });

function schemata(revision: number): Record<string, unknown> {
  const added = Array.from({ length: revision - 1 }, (_, index) => [`p${index + 2}`, {}]);
  return {
    type: "object",
    required: ["n"],
    properties: { n: { type: "integer" }, ...Object.fromEntries(added) },
  };
}

export async function createActions(model: Model, { evreg, run }: Real): Promise<void> {
  for (const name of [`run${run}.a`, `run${run}.b`]) {
    await evreg.actions.create({ action: name, application: "owner", schemata: schemata(1) });
    model.actions.push({ name, revision: 1 });
  }
}

const index = fc.nat(1_000);
/** Few, so that they meet. */
const key = fc.option(fc.nat(2), { nil: undefined });
const item = fc.record({ action: fc.nat(3), value: fc.nat(1), key });
type Item = typeof item extends fc.Arbitrary<infer T> ? T : never;

function prepared(model: Model, { run }: Real, { action: at, value, key: number }: Item) {
  const action = pick(model.actions, at)!;
  const text = `{"n":${value},"9":1}`;
  const idempotency_key = number === undefined ? undefined : `${run}-${number}`;
  const payload = RawJson.fromText(text);
  const input = {
    action: action.name,
    payload,
    ...(idempotency_key === undefined ? {} : { idempotency_key }),
  };
  return { action, text, key: idempotency_key, input };
}

/** What becomes of an item that is published now; a fresh one is recorded by the model once its rowid is known. */
function expectation(model: Model, one: { action: ModelAction; text: string; key: string | undefined }) {
  const previous = model.keyed(one.key);
  if (previous === undefined) return { kind: "fresh" } as const;
  const isSame = previous.action === one.action && previous.text === one.text;
  return isSame ? ({ kind: "replayed", rowid: previous.rowid } as const) : ({ kind: "conflict" } as const);
}

const publish = item.map((given) =>
  step(`publish ${JSON.stringify(given)}`, async (model, real) => {
    const one = prepared(model, real, given);
    const expected = expectation(model, one);
    const publishing = real.evreg.events.publish(one.input);
    if (expected.kind === "conflict") return expect(publishing).rejects.toEqual(refusedAs("conflict"));
    const { data, replayed } = await publishing;
    expect(replayed).toBe(expected.kind === "replayed");
    if (expected.kind === "replayed") expect(data.rowid).toBe(expected.rowid);
    else {
      const { action, text, key: used } = one;
      model.record(
        {
          rowid: data.rowid,
          action,
          revision: action.revision,
          text,
          key: used,
          atMs: Date.parse(data.timestamped),
        },
        real.clock.now(),
      );
    }
  }),
);

const publishBatch = fc
  .record({
    items: fc.array(fc.record({ item, valid: fc.boolean() }), { minLength: 1, maxLength: 4 }),
    atomic: fc.boolean(),
  })
  .map(({ items, atomic }) =>
    step(`batch ${JSON.stringify({ items, atomic })}`, async (model, real) => {
      const all = items.map(({ item: given, valid }) => ({ ...prepared(model, real, given), valid }));
      const inputs = all.map(({ input, valid }) =>
        valid ? input : { ...input, payload: RawJson.fromText('{"n":"x"}') },
      );
      const { data } = await real.evreg.events.publishBatch(inputs, { atomic });
      const before = { events: model.events.length, deliveries: model.deliveries.length };
      let isRefused = false;
      const expected = all.map((one, at) => {
        const outcome = one.valid ? expectation(model, one) : ({ kind: "invalid" } as const);
        if (outcome.kind === "replayed") return outcome.rowid;
        if (outcome.kind !== "fresh") {
          isRefused = true;
          return null;
        }
        const { action, text, key: used } = one;
        // With all or nothing a rowid is only known where all went well; a wrong one is found by the lists.
        const rowid = data[at]?.rowid ?? Number.MAX_SAFE_INTEGER;
        const nowMs = real.clock.now();
        const atMs = Date.parse(data[at]?.timestamped ?? toIso(nowMs));
        model.record({ rowid, action, revision: action.revision, text, key: used, atMs }, nowMs);
        return rowid;
      });
      if (atomic && isRefused) {
        model.events.length = before.events;
        model.deliveries.length = before.deliveries;
        expected.fill(null);
      }
      expect(data.map((event) => event?.rowid ?? null)).toEqual(expected);
    }),
  );

const revise = fc
  .record({ at: fc.nat(1), how: fc.constantFrom("compatible", "same", "breaking") })
  .map(({ at, how }) =>
    step(`revise ${at} ${how}`, async (model, { evreg }) => {
      const action = model.actions[at]!;
      const next = schemata(how === "compatible" ? action.revision + 1 : action.revision);
      if (how === "breaking") {
        const updating = evreg.actions.update(action.name, {
          schemata: { ...next, required: ["n", "more"] },
        });
        return expect(updating).rejects.toEqual(refusedAs("conflict"));
      }
      const { data } = await evreg.actions.update(action.name, { schemata: next });
      if (how === "compatible") action.revision += 1;
      expect(data.revision).toBe(action.revision);
    }),
  );

/** What a subscription may be to: one of two actions, or all of the run. */
function targetAt(model: Model, run: number, at: number): ModelAction {
  return model.actions[at] ?? { name: `run${run}.*`, revision: 0 };
}

const ordering = fc.record({ order: fc.constantFrom("block", "skip"), byKey: fc.boolean() });
type Ordering = typeof ordering extends fc.Arbitrary<infer T> ? T : never;

function orderOf(given: Ordering | null) {
  if (given === null) return { ordered: false };
  return { ordered: given.byKey ? { key: "/n" } : true, on_exhausted: given.order };
}

function shownOrder(given: Ordering | null): string {
  return given === null ? "in no order" : `${given.order}${given.byKey ? " by key" : ""}`;
}

/** Patterns hear it from now on. */
const register = fc.constant(
  step("register", async (model, { evreg, run }) => {
    const name = `run${run}.later${model.actions.length}`;
    if (model.actions.length > 3) return;
    await evreg.actions.create({ action: name, application: "owner", schemata: schemata(1) });
    model.actions.push({ name, revision: 1 });
  }),
);

const subscribe = fc
  .record({
    at: fc.nat(2),
    name: fc.nat(1),
    active: fc.boolean(),
    maxRetries: fc.nat(2),
    ordering: fc.option(ordering, { freq: 2 }),
  })
  .map(({ at, name, active, maxRetries, ordering: given }) =>
    step(
      `subscribe ${name} to ${at} ${active} ${maxRetries} ${shownOrder(given)}`,
      async (model, { evreg, run }) => {
        const action = at === 2 ? targetAt(model, run, -1) : model.actions[at]!;
        const handler = "https://h.example/1";
        const named = { application: `run${run}`, subscription: `s${name}` };
        const creating = evreg.subscriptions.create({
          ...named,
          action: action.name,
          handler,
          active,
          max_retries: maxRetries,
          ...orderOf(given),
        });
        if (model.isTaken(named.subscription, action)) {
          return expect(creating).rejects.toEqual(refusedAs("conflict"));
        }
        const { rowid } = (await creating).data;
        const known = { rowid, name: named.subscription, action, handler, maxRetries, active };
        const { order = null, byKey = false } = given ?? {};
        model.subscriptions.push({ ...known, order, byKey, disabledReason: null, deleted: false });
      },
    ),
  );

type Change = "pause" | "resume" | "move" | "rebind";

const change = fc
  .record({ at: index, what: fc.constantFrom<Change>("pause", "resume", "resume", "move", "rebind") })
  .map(({ at, what }) =>
    step(`${what} ${at}`, async (model, { evreg, run }) => {
      const found = pick(model.subscriptions, at);
      if (found === undefined) return;
      const { patch, apply, isTaken } = changed(model, run, found, what);
      const updating = evreg.subscriptions.update(found.rowid, patch);
      if (found.deleted) return expect(updating).rejects.toEqual(refusedAs("not_found"));
      if (isTaken) return expect(updating).rejects.toEqual(refusedAs("conflict"));
      await updating;
      apply();
    }),
  );

function changed(model: Model, run: number, found: ModelSubscription, what: Change) {
  if (what === "move") {
    const handler = `${found.handler}1`;
    return { patch: { handler }, apply: () => void (found.handler = handler), isTaken: false };
  }
  if (what === "rebind") {
    const targets = [...model.actions, targetAt(model, run, -1)];
    const at = targets.findIndex(({ name }) => name === found.action.name);
    const action = targets[(at + 1) % targets.length]!;
    const apply = (): void => void (found.action = action);
    return { patch: { action: action.name }, apply, isTaken: model.isTaken(found.name, action) };
  }
  const active = what === "resume";
  const apply = (): void => {
    found.active = active;
    found.disabledReason = null;
  };
  return { patch: { active }, apply, isTaken: false };
}

const reorder = fc.record({ at: index, given: fc.option(ordering, { freq: 3 }) }).map(({ at, given }) =>
  step(`order ${at} ${shownOrder(given)}`, async (model, { evreg }) => {
    const found = pick(model.living, at);
    if (found === undefined) return;
    await evreg.subscriptions.update(found.rowid, orderOf(given));
    model.setOrder(found, given?.order ?? null, given?.byKey ?? false);
  }),
);

const remove = index.map((at) =>
  step(`delete ${at}`, async (model, { evreg }) => {
    const found = pick(model.subscriptions, at);
    if (found === undefined) return;
    const deleting = evreg.subscriptions.delete(found.rowid);
    if (found.deleted) return expect(deleting).rejects.toEqual(refusedAs("not_found"));
    await deleting;
    found.deleted = true;
  }),
);

const retry = index.map((at) =>
  step(`retry ${at}`, async (model, { evreg, clock }) => {
    const delivery = pick(model.deliveries, at);
    if (delivery === undefined) return;
    const { data } = await evreg.events.deliveries(delivery.event.rowid);
    const found = data.find(({ subscription_id }) => subscription_id === delivery.subscription.rowid);
    const retrying = evreg.deliveries.retry(found?.rowid ?? 0);
    const isFree = ["failed", "filtered", "waiting", "delivered"].includes(statusOf(delivery));
    if (!isFree || delivery.subscription.deleted)
      return expect(retrying).rejects.toEqual(refusedAs("conflict"));
    await retrying;
    model.retry(delivery, clock.now());
  }),
);

const skip = index.map((at) =>
  step(`skip ${at}`, async (model, { evreg, clock }) => {
    const delivery = pick(model.deliveries, at);
    if (delivery === undefined) return;
    const { data } = await evreg.events.deliveries(delivery.event.rowid);
    const found = data.find(({ subscription_id }) => subscription_id === delivery.subscription.rowid);
    const skipping = evreg.deliveries.skip(found?.rowid ?? 0);
    const isFree = ["pending", "waiting", "held"].includes(statusOf(delivery));
    if (!isFree || delivery.lastError === null)
      return expect(skipping).rejects.toEqual(refusedAs("conflict"));
    await skipping;
    delivery.state = "failed";
    model.settle(delivery.subscription, delivery.key, clock.now());
  }),
);

const claim = fc.constantFrom(1, 2, 100).map((limit) =>
  step(`claim ${limit}`, async (model, { store, clock }) => {
    const nowMs = clock.now();
    const due = model.due(nowMs);
    const { claims } = await store.queue.claim(claimRequest({ nowMs, limit, leaseMs: LEASE_MS }));
    expect(claims).toHaveLength(Math.min(limit, due.length));
    for (const one of claims) {
      const { claimId, event, subscription, attempt, failures } = one;
      const delivery = due.find(
        (each) =>
          each.event.rowid === event.eventId && each.subscription.rowid === subscription.subscriptionId,
      )!;
      expect([attempt, failures, subscription.handler, Buffer.from(event.payload!).toString()]).toEqual([
        delivery.outcomes.length + 1,
        delivery.failures,
        delivery.subscription.handler,
        delivery.event.text,
      ]);
      delivery.lease = { claimId, untilMs: nowMs + LEASE_MS };
      model.claims.push(one);
    }
    // Nothing is leased twice.
    expect(due.filter(({ lease }) => lease !== undefined)).toHaveLength(claims.length);
  }),
);

const ENDINGS = [
  "delivered",
  "failed",
  "failed",
  "failed",
  "gone",
  "interrupted",
  "never started",
  "filtered",
] as const;

const finishOne = fc
  .record({
    at: index,
    ending: fc.constantFrom(...ENDINGS),
    afterMs: fc.nat(20_000),
  })
  .map(({ at, ending, afterMs }) =>
    step(`finish ${at} ${ending} ${afterMs}`, async (model, { store, clock }) => {
      const claimed = pick(model.claims, at);
      if (claimed === undefined) return;
      const { deliveryId, claimId, event, subscription } = claimed;
      const nowMs = clock.now();
      const { handler } = subscription;
      const delivery = model.leased(claimId, event.eventId, subscription.subscriptionId);
      const waitMs = ending === "failed" ? afterMs : 0;
      const code = STATUS_CODES[ending];
      const result = {
        deliveryId,
        claimId,
        startedAtMs: nowMs,
        durationMs: 1,
        ending,
        ...(code === undefined ? {} : { statusCode: code }),
        ...(waitMs > 0 ? { retryAfterMs: waitMs } : {}),
        handler,
      };
      const outcomes = await store.queue.finish([result], nowMs, { retryScheduleMs: [0] });
      expect(outcomes).toMatchObject([{ kind: delivery === undefined ? "fenced" : "stored" }]);
      if (delivery === undefined) return;
      const error = code === undefined ? null : `HTTP ${code}`;
      finish(delivery, { ending, error, handler, waitMs }, nowMs);
      model.settle(delivery.subscription, delivery.key, nowMs);
    }),
  );

const release = fc.constant(
  step("release", async (model, { store, clock }) => {
    expect(await store.queue.releaseExpired(clock.now())).toBe(model.release(clock.now()));
  }),
);

/** Events of other runs on the same store go, too, which nobody misses. */
const expire = fc.nat(15_000).map((keepMs) =>
  step(`expire ${keepMs}`, async (model, { store, clock }) => {
    const beforeMs = clock.now() - keepMs;
    let next: number | undefined;
    do ({ next } = await store.events.removeExpired({ beforeMs }, next));
    while (next !== undefined);
    model.expire(beforeMs);
  }),
);

/** Also back, as clocks are set. */
const pass = fc
  .integer({ min: -5_000, max: 20_000 })
  .map((byMs) => step(`pass ${byMs}`, (_, { clock }) => Promise.resolve(clock.set(clock.now() + byMs))));

/** What leads far into a delivery's life comes more often than the rest. */
export const STEPS: readonly fc.Arbitrary<Step>[] = [
  [revise, remove, publishBatch, publish, change, retry, skip, reorder, register],
  [subscribe, subscribe, publish, pass, pass, release, release, expire],
  [claim, claim, claim, finishOne, finishOne, finishOne],
].flat();
