import { beforeEach, describe, expect, it } from "vitest";
import type { NewEvent } from "../../src/domain/event.ts";
import { PAYLOAD_BYTES } from "../support/local-service.ts";
import {
  ANY_OBJECT,
  freshName,
  makeAny,
  newAction,
  newEvent,
  publish,
  rawEvent,
  refusal,
  subscribe,
  totalOf,
  useEvreg,
  useSharedEvreg,
} from "./harness.ts";
import type { EvregUnderTest, OpenEvreg } from "./harness.ts";

/** Each would come out different after parsing and writing again. */
const FRAGILE = [
  '{"b":1,"a":2,"10":3,"2":4}',
  '{ "big" : 12345678901234567890 , "tiny":1.0e-400,"exact":1.10 }',
  '{\n\t"escaped": "\\u00e9\\/\\ud83d\\ude00", "plain": "é/😀" }',
  '{"__proto__":{"x":1},"constructor":null,"nul":"\\u0000"}',
  '{"-0":-0,"e":1E+2,"":{"":[[],{},""]}}',
];

async function prepare(under: EvregUnderTest): Promise<void> {
  await under.evreg.actions.create(newAction());
  await makeAny(under, "any");
}

/** An object that takes this many bytes, written as JSON. */
function ofBytes(bytes: number): string {
  return `{"a":"${"é".repeat(100)}${"x".repeat(bytes - 208)}"}`;
}

export function publishContract(open: OpenEvreg): void {
  describe("publishing", () => {
    const under = useEvreg(open, prepare);

    it("answers with the event as it is stored", async () => {
      const { data, replayed } = await under.evreg.events.publish(newEvent());
      expect(replayed).toBe(false);
      expect({ ...data, payload: data.payload.text() }).toEqual({
        rowid: 1,
        action: "user.created",
        payload: '{"email":"ada@example.com"}',
        revision: 1,
        timestamped: "2026-01-01T00:00:00.000Z",
      });
      const kept = (await under.evreg.events.get(1)).data;
      expect({ ...kept, payload: kept.payload.text() }).toEqual({ ...data, payload: data.payload.text() });
    });

    it("reads names with escapes as what they stand for, whatever others have published", async () => {
      const { actions, events } = under.evreg;
      await events.publish(rawEvent(String.raw`{"id":1,"kunde":"c","gr\\u0":1}`, "any"));
      const own = freshName();
      const properties = { größe: { type: "number" }, kunde: {}, id: {} };
      await actions.create(
        newAction({
          action: own,
          schemata: { required: ["größe"], properties, additionalProperties: false },
        }),
      );
      const sized = (size: string): NewEvent =>
        rawEvent(String.raw`{"id":1,"kunde":"c","gr\u00f6\u00dfe":${size}}`, own);
      await events.publish(sized("5"));
      await refusal(events.publish(sized('"5"')), "invalid", { field: "größe", message: "must be a number" });
    });

    it("refuses a payload with all the rules that it breaks, up to 20", async () => {
      const rules = { properties: { n: { minimum: 0, multipleOf: 2 }, list: { items: { type: "string" } } } };
      const strict = freshName();
      await under.evreg.actions.create(
        newAction({ action: strict, schemata: { ...ANY_OBJECT, required: ["id"], ...rules } }),
      );
      const publishing = (payload: object) =>
        refusal(under.evreg.events.publish(rawEvent(JSON.stringify(payload), strict)), "invalid");
      const id = { field: "id", message: "is required", value: null };
      expect(await publishing({ n: -1 })).toMatchObject({
        details: {
          ...id,
          errors: [
            id,
            { field: "n", message: "must be at least 0", value: -1 },
            { field: "n", message: "must be a multiple of 2", value: -1 },
          ],
        },
      });
      const { details } = await publishing({ id: 1, list: Array.from({ length: 5_000 }, () => 0) });
      expect(details["errors"]).toHaveLength(20);
      expect(details["errors"]).toContainEqual({ field: "list[19]", message: "must be a string", value: 0 });
    });
  });

  describe("payloads", () => {
    const under = useSharedEvreg(open, prepare);

    it.each(FRAGILE)("are stored byte for byte: %s", async (text) => {
      const event = { ...rawEvent(text, "any"), idempotency_key: `once ${FRAGILE.indexOf(text)}` };
      const { rowid, payload } = await publish(under.evreg, event);
      expect(payload.text()).toBe(text);
      expect((await under.evreg.events.get(rowid)).data.payload.text()).toBe(text);
      expect((await under.evreg.events.list()).data[0]?.payload.text()).toBe(text);
      expect((await under.evreg.events.publish(event)).data.payload.text()).toBe(text);
      const batch = await under.evreg.events.publishBatch([rawEvent(text, "any")]);
      expect(batch.data[0]?.payload.text()).toBe(text);
    });

    it.each([
      [{}, "email", null],
      [{ email: 7 }, "email", 7],
      [{ email: "ada" }, "email", "ada"],
      [{ email: "a@example.com", name: "" }, "name", ""],
      [{ email: "a@example.com", address: { zip: 8001 } }, "address.zip", 8001],
      [{ email: "a@example.com", items: [{}, {}, { sku: null }] }, "items[2].sku", null],
      [{ email: "a@example.com", address: "home" }, "address", "home"],
    ])("are refused: %j for its %s", async (payload, field, value) => {
      const before = (await under.evreg.events.list()).meta.total;
      const error = await refusal(publish(under.evreg, newEvent(payload)), "invalid");
      const rule = { field, message: expect.stringMatching(/./), value };
      expect(error.details).toEqual({ ...rule, errors: [rule] });
      expect(error.message).toContain(field);
      expect((await under.evreg.events.list()).meta.total).toBe(before);
    });

    it.each(["[]", '"text"', "7", "null", "true"])(
      "are refused unless they are objects: %s",
      async (text) => {
        await refusal(publish(under.evreg, rawEvent(text, "any")), "invalid", { field: "payload" });
      },
    );

    it.each([
      ["what is not JSON", '{"a":1,}'],
      ["duplicate keys", '{"a":1,"a":2}'],
      ["duplicate keys in disguise", '{"a":1,"\\u0061":2}'],
      ["a lone surrogate", '{"a":"\\ud800"}'],
      ["65 levels", `${'{"a":'.repeat(65)}1${"}".repeat(65)}`],
      ["two documents", "{}{}"],
    ])("are refused rather than altered: %s", async (_, text) => {
      const before = (await under.evreg.events.list()).meta.total;
      await refusal(publish(under.evreg, rawEvent(text, "any")), "malformed");
      expect((await under.evreg.events.list()).meta.total).toBe(before);
    });

    it("may have 64 levels", async () => {
      const text = `${'{"a":'.repeat(64)}1${"}".repeat(64)}`;
      expect((await publish(under.evreg, rawEvent(text, "any"))).payload.text()).toBe(text);
    });

    it("may be as large as the limit, and not a byte more", async () => {
      await publish(under.evreg, rawEvent(ofBytes(PAYLOAD_BYTES), "any"));
      const error = await refusal(
        publish(under.evreg, rawEvent(ofBytes(PAYLOAD_BYTES + 1), "any")),
        "too_large",
      );
      expect(error.details).toEqual({ limit: PAYLOAD_BYTES, size: PAYLOAD_BYTES + 1 });
    });
  });

  describe("idempotency keys", () => {
    const under = useSharedEvreg(open);
    let users: string;
    let anyone: string;

    beforeEach(async () => {
      users = freshName();
      anyone = `${users}.any`;
      await under.evreg.actions.create(newAction({ action: users }));
      await makeAny(under, anyone);
    });

    /** The running test's own. */
    const keyOf = (key: string): string => `${users} ${key}`;
    const keyed = (key: string, payload?: unknown, action = users): NewEvent => ({
      ...newEvent(payload, action),
      idempotency_key: keyOf(key),
    });
    const total = (): Promise<number> => totalOf(under.evreg, users, anyone);

    it("answer with the first event again, and store nothing", async () => {
      const first = await under.evreg.events.publish(keyed("order 1"));
      await under.clock.advance(86_400_000);
      await publish(under.evreg, newEvent(undefined, users));
      const again = await under.evreg.events.publish(keyed("order 1"));
      expect(again.replayed).toBe(true);
      expect(again.data.rowid).toBe(first.data.rowid);
      expect(again.data.timestamped).toBe(first.data.timestamped);
      expect(await total()).toBe(2);
    });

    it("answer with the revision the first event was checked by", async () => {
      await under.evreg.events.publish(keyed("k", {}, anyone));
      await under.evreg.actions.update(anyone, { schemata: { ...ANY_OBJECT, title: "next" } });
      const again = await under.evreg.events.publish(keyed("k", {}, anyone));
      expect(again).toMatchObject({ replayed: true, data: { revision: 1 } });
    });

    it("answer with the first event even if its payload would be refused now", async () => {
      const { actions, events } = under.evreg;
      const event = keyed("k", {}, anyone);
      const { data } = await events.publish(event);
      const stricter = { ...ANY_OBJECT, required: ["email"] };
      await actions.update(anyone, { schemata: stricter }, { compatibility: "none" });
      expect(await events.publish(event)).toMatchObject({ replayed: true, data: { rowid: data.rowid } });
      for (const atomic of [false, true]) {
        const items = [keyed("other", { email: "x" }, anyone), event];
        const batch = await events.publishBatch(items, { atomic });
        expect(batch.data[1]?.rowid).toBe(data.rowid);
        // The second time the other one is there already as well.
        expect(batch.meta).toEqual({ accepted: 2, rejected: 0, replayed: atomic ? 2 : 1 });
      }
      const others = [keyed("new", {}, anyone), keyed("k", { other: 1 }, anyone)];
      for (const other of others) {
        await refusal(events.publish(other), "invalid", { field: "email" });
      }
      expect(await total()).toBe(2);
    });

    it("create no second delivery", async () => {
      const to = await subscribe(under.evreg, { action: users });
      await under.evreg.events.publish(keyed("k"));
      await under.evreg.events.publish(keyed("k"));
      expect((await under.evreg.deliveries.list({ subscription: to.rowid })).data).toHaveLength(1);
    });

    it("conflict with another payload, down to its bytes, and with another action", async () => {
      await under.evreg.events.publish(keyed("k", { email: "ada@example.com" }, anyone));
      const others = [
        keyed("k", { email: "bob@example.com" }, anyone),
        { ...rawEvent('{"email": "ada@example.com"}', anyone), idempotency_key: keyOf("k") },
        keyed("k", { email: "ada@example.com" }, users),
      ];
      for (const other of others) {
        await refusal(under.evreg.events.publish(other), "conflict", {
          field: "idempotency_key",
          value: keyOf("k"),
        });
      }
      expect(await total()).toBe(1);
    });

    it("belong to the application of the action: another one learns nothing about them", async () => {
      const theirs = `${users}.theirs`;
      await under.evreg.actions.create(
        newAction({ action: theirs, application: "billing", schemata: ANY_OBJECT }),
      );
      const publisher = await under.as(["publish:billing"]);
      const first = await under.evreg.events.publish(keyed("k", {}, anyone));
      const second = await publisher.events.publish(keyed("k", { n: 1 }, theirs));
      expect([first.replayed, second.replayed]).toEqual([false, false]);
      expect(second.data.rowid).not.toBe(first.data.rowid);
      const batch = await publisher.events.publishBatch([keyed("k", { n: 1 }, theirs)]);
      expect(batch.meta).toEqual({ accepted: 1, rejected: 0, replayed: 1 });
      const reader = await under.as(["read:billing"]);
      const used = { idempotency_key: keyOf("k") };
      const found = async (evreg: typeof publisher): Promise<number[]> =>
        (await evreg.events.list(used)).data.map(({ rowid }) => rowid);
      expect(await found(reader)).toEqual([second.data.rowid]);
      expect(await found(under.evreg)).toEqual([second.data.rowid, first.data.rowid]);
    });

    it("lead to one event for many concurrent callers", async () => {
      const calls = Array.from({ length: 20 }, () => under.evreg.events.publish(keyed("k")));
      const answers = await Promise.all(calls);
      expect(new Set(answers.map(({ data }) => data.rowid)).size).toBe(1);
      expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    });

    it("are not used up by a refused event", async () => {
      await refusal(under.evreg.events.publish(keyed("k", {})), "invalid");
      expect((await under.evreg.events.publish(keyed("k"))).replayed).toBe(false);
    });

    it("are case-sensitive, and spaces count", async () => {
      for (const key of ["k", "K", "k ", "~", "x".repeat(255)]) {
        const event = { ...newEvent(undefined, users), idempotency_key: key };
        expect((await under.evreg.events.publish(event)).replayed).toBe(false);
      }
    });
  });
}
