import { beforeEach, describe, expect, it } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { readEventLine } from "../../src/domain/publish-body.ts";
import {
  ANY_OBJECT,
  freshName,
  makeAny,
  newAction,
  newEvent,
  type OpenEvreg,
  rawEvent,
  refusal,
  subscribe,
  totalOf,
  useSharedEvreg,
} from "./harness.ts";

export function batchContract(open: OpenEvreg): void {
  describe("publishing batches", () => {
    const under = useSharedEvreg(open);
    /** One that wants users, and one that takes any object. */
    let users: string;
    let anyone: string;

    beforeEach(async () => {
      users = freshName();
      anyone = `${users}.any`;
      await under.evreg.actions.create(newAction({ action: users }));
      await makeAny(under, anyone);
    });

    const any = (payload: unknown): NewEvent => newEvent(payload, anyone);
    const user = (payload?: unknown): NewEvent => newEvent(payload, users);
    /** The key is the running test's own. */
    const keyed = (key: string, payload: unknown): NewEvent => ({
      ...any(payload),
      idempotency_key: `${users} ${key}`,
    });
    const total = (): Promise<number> => totalOf(under.evreg, users, anyone);

    it("answers with one event for each item, in order", async () => {
      const items = [any({ n: 0 }), user(), any({ n: 2 })];
      const { data, errors, meta } = await under.evreg.events.publishBatch(items);
      const first = data[0]!.rowid;
      expect(data.map((event) => [event?.rowid, event?.action, event?.payload.text()])).toEqual([
        [first, anyone, '{"n":0}'],
        [first + 1, users, '{"email":"ada@example.com"}'],
        [first + 2, anyone, '{"n":2}'],
      ]);
      expect(errors).toEqual([]);
      expect(meta).toEqual({ accepted: 3, rejected: 0, replayed: 0 });
      expect((await under.evreg.events.get(first + 2)).data.payload.text()).toBe('{"n":2}');
    });

    it("accepts the valid items and reports each of the others", async () => {
      const items = [
        user({ email: "nobody" }),
        any({ n: 1 }),
        newEvent({}, "unknown"),
        rawEvent("[]", anyone),
        any({ n: 4 }),
        { ...any({}), idempotency_key: "" },
      ];
      const { data, errors, meta } = await under.evreg.events.publishBatch(items);
      expect(data.map((event) => event?.payload.text() ?? null)).toEqual([
        null,
        '{"n":1}',
        null,
        null,
        '{"n":4}',
        null,
      ]);
      expect(errors.map(({ index, code, details }) => [index, code, details["field"]])).toEqual([
        [0, 422, "email"],
        [2, 404, "action"],
        [3, 422, "payload"],
        [5, 422, "idempotency_key"],
      ]);
      expect(errors[0]).toEqual({
        index: 0,
        error: expect.stringContaining("email"),
        details: {
          field: "email",
          message: expect.stringMatching(/./),
          value: "nobody",
        },
        code: 422,
      });
      expect(meta).toEqual({ accepted: 2, rejected: 4, replayed: 0 });
      expect(await total()).toBe(2);
    });

    it("accepts the events of lines, and reports each line that is refused", async () => {
      const keyOf = (): string => `${users} line`;
      const lines = [
        `{"action":"${anyone}", "payload":{"10":1,"2":1.0}}`,
        `{"payload":{"text":"},{"},"action":"${anyone}"}`,
        `{"action":"${users}","payload":{}}`,
        `{"action":"${anyone}","payload":{"n":1,"n":2}}`,
        `{"action":"${anyone}","payload":{"t":"\\ud800"}}`,
        `{"action":"${anyone}","payload":{},"more":1}`,
        `{"action":"${anyone}","payload":{},"idempotency_key":"${users} own"}`,
        `{"action":"${anyone}","payload":{}`,
        "{}",
      ];
      const broken = `{"action":"${anyone}","payload":{"n":1.}}`;
      const refusedAt = [2, 3, 4, 5, 7, 8, 9];
      for (const texts of [lines, [...lines, broken]]) {
        const items = texts.map((text, n) => readEventLine(Buffer.from(text), n === 1 ? keyOf : undefined));
        const { data, errors, meta } = await under.evreg.events.publishBatch(items);
        expect(data.slice(0, 2).map((event) => event?.payload.text())).toEqual([
          '{"10":1,"2":1.0}',
          '{"text":"},{"}',
        ]);
        const one = (index: number): unknown => errors.find((error) => error.index === index);
        expect(one(2)).toMatchObject({ code: 422, details: { field: "email" } });
        expect(one(3)).toMatchObject({ code: 400, error: expect.stringContaining(" at column ") });
        expect(errors.map(({ index }) => index)).toEqual(refusedAt.filter((place) => place < texts.length));
        for (const { index } of errors.slice(1)) {
          expect(one(index)).toEqual({ index, ...(items[index] as EvregError).body() });
        }
        expect(meta).toMatchObject({ accepted: 3, rejected: texts.length - 3 });
      }
      // The second time the two with keys were there already.
      expect(await total()).toBe(4);
    });

    it("may accept no item at all", async () => {
      const { data, errors, meta } = await under.evreg.events.publishBatch([user({}), user({})]);
      expect(data).toEqual([null, null]);
      expect(errors.map(({ index }) => index)).toEqual([0, 1]);
      expect(meta).toEqual({ accepted: 0, rejected: 2, replayed: 0 });
    });

    it("takes 1 to 1,000 items", async () => {
      for (const count of [0, 1_001]) {
        const items = Array.from({ length: count }, (_, n) => any({ n }));
        await refusal(under.evreg.events.publishBatch(items), "invalid", { field: "events" });
      }
      const most = Array.from({ length: 1_000 }, (_, n) => any({ n }));
      const { meta, data } = await under.evreg.events.publishBatch(most);
      expect(meta).toEqual({ accepted: 1_000, rejected: 0, replayed: 0 });
      expect(data.map((event) => event?.payload.value())).toEqual(most.map((_, n) => ({ n })));
      expect(await total()).toBe(1_000);
    });

    it("answers with earlier events for keys used before, also within the batch", async () => {
      const first = (await under.evreg.events.publish(keyed("a", { n: 0 }))).data;
      const items = [keyed("a", { n: 0 }), keyed("b", { n: 1 }), keyed("b", { n: 1 }), keyed("b", { n: 2 })];
      const { data, errors, meta } = await under.evreg.events.publishBatch(items);
      expect(data.map((event) => event?.rowid ?? null)).toEqual([
        first.rowid,
        data[1]?.rowid,
        data[1]?.rowid,
        null,
      ]);
      expect(errors).toEqual([
        { index: 3, error: expect.stringMatching(/./), details: expect.anything(), code: 409 },
      ]);
      expect(meta).toEqual({ accepted: 3, rejected: 1, replayed: 2 });
      expect(await total()).toBe(2);
    });

    it("omits the events from the answer on request", async () => {
      const { events } = under.evreg;
      const items = [any({ n: 0 }), user({}), keyed("a", { n: 2 }), keyed("a", { n: 2 })];
      const { data, errors, meta } = await events.publishBatch(items, { minimal: true });
      expect(data).toEqual([]);
      expect(errors.map(({ index, code }) => [index, code])).toEqual([[1, 422]]);
      expect(meta).toEqual({ accepted: 3, rejected: 1, replayed: 1 });
      expect(await total()).toBe(2);
      const none = await events.publishBatch([any({}), user({})], { minimal: true, atomic: true });
      expect(none).toMatchObject({ data: [], errors: [{ index: 1 }], meta: { accepted: 0, rejected: 2 } });
      expect((await events.publishBatch([any({})], { minimal: false })).data).toHaveLength(1);
      expect(await total()).toBe(3);
    });

    it("queues a delivery for each accepted event", async () => {
      await subscribe(under.evreg, { action: anyone });
      const published = await under.evreg.events.publishBatch([any({}), user(), any({}), user({})]);
      const [first, , third] = published.data.map((event) => event?.rowid);
      expect((await under.evreg.deliveries.list({ action: users })).data).toEqual([]);
      const { data } = await under.evreg.deliveries.list({ action: anyone });
      expect(data.map(({ event_id, action }) => [event_id, action])).toEqual([
        [third, anyone],
        [first, anyone],
      ]);
    });

    it("checks each item by the current schema", async () => {
      await under.evreg.actions.update(anyone, { schemata: { ...ANY_OBJECT, title: "second" } });
      const { data } = await under.evreg.events.publishBatch([any({}), user()]);
      expect(data.map((event) => event?.revision)).toEqual([2, 1]);
    });

    it("accepts whole batches while schemas change", async () => {
      const batches = Array.from({ length: 10 }, (_, n) =>
        under.evreg.events.publishBatch(
          Array.from({ length: 20 }, (_item, m) => (m % 2 === 0 ? any({ n, m }) : user())),
          { atomic: n % 2 === 0 },
        ),
      );
      const updates = Array.from({ length: 5 }, (_, n) =>
        under.evreg.actions.update(anyone, { schemata: { ...ANY_OBJECT, title: `${n}` } }),
      );
      const results = await Promise.all(batches);
      await Promise.all(updates);
      expect(results.map(({ meta }) => meta)).toEqual(
        results.map(() => ({ accepted: 20, rejected: 0, replayed: 0 })),
      );
      expect(await total()).toBe(200);
    });

    describe("all or nothing", () => {
      const atomic = { atomic: true };

      it("stores nothing where one is refused, reports only what is, and uses up no key", async () => {
        await under.evreg.events.publish(keyed("used", { n: 0 }));
        const unread = new EvregError("malformed", "Line 5 is not JSON.");
        const bad = (key: string): NewEvent => ({ ...user({}), idempotency_key: `${users} ${key}` });
        /** The items, and the code of each that is refused, by its index. */
        const batches: readonly (readonly [(NewEvent | EvregError)[], Record<number, number>])[] = [
          [[any({}), user({}), newEvent({}, "unknown"), unread], { 1: 422, 2: 404, 3: 400 }],
          [[bad("a"), any({}), bad("b")], { 0: 422, 2: 422 }],
          [[bad("a"), any({}), bad("b"), user({})], { 0: 422, 2: 422, 3: 422 }],
          [[keyed("new", {}), keyed("used", { n: 1 }), keyed("used", { n: 0 })], { 1: 409 }],
        ];
        for (const [items, refused] of batches) {
          const { data, errors, meta } = await under.evreg.events.publishBatch(items, atomic);
          expect(data).toEqual(items.map(() => null));
          expect(Object.fromEntries(errors.map(({ index, code }) => [index, code]))).toEqual(refused);
          expect(meta).toEqual({ accepted: 0, rejected: items.length, replayed: 0 });
        }
        expect(await total()).toBe(1);
        expect((await under.evreg.events.publish(keyed("new", {}))).replayed).toBe(false);
      });

      it("accepts a repeated key", async () => {
        const { rowid } = (await under.evreg.events.publish(keyed("a", { n: 0 }))).data;
        const { data, meta } = await under.evreg.events.publishBatch([any({}), keyed("a", { n: 0 })], atomic);
        expect(data.map((event) => event?.rowid)).toEqual([rowid + 1, rowid]);
        expect(meta).toEqual({ accepted: 2, rejected: 0, replayed: 1 });
      });
    });
  });
}
