import { describe, expect, it } from "vitest";
import type { EventQuery } from "../../src/domain/event.ts";
import {
  ANY_OBJECT,
  claimDue,
  finishNow,
  freshName,
  makeAny,
  newAction,
  newEvent,
  publish,
  rawEvent,
  subscribe,
  useEvreg,
  useSharedEvreg,
} from "./harness.ts";
import type { EvregUnderTest, OpenEvreg } from "./harness.ts";

/** Events 1 to 1,200, of which each hundredth is from France. */
async function prepareMany(under: EvregUnderTest): Promise<void> {
  const { evreg } = under;
  await makeAny(under, "a");
  for (let start = 1; start <= 1_200; start += 600) {
    const items = Array.from({ length: 600 }, (_, index) => {
      const n = start + index;
      return newEvent({ n, country: n % 100 === 0 ? "FR" : "DE" }, "a");
    });
    await evreg.events.publishBatch(items);
  }
}

const ids = (data: readonly { rowid: number }[]) => data.map(({ rowid }) => rowid);

export function eventSearchContract(open: OpenEvreg): void {
  describe("searching events by a schema", () => {
    const under = useSharedEvreg(open, prepareMany);
    const where = JSON.stringify({ properties: { country: { const: "FR" } }, required: ["country"] });
    const search = (query: EventQuery) => under.evreg.events.list({ where, ...query });

    it("finds those whose payload conforms, newest first, and says what it looked at", async () => {
      const { data, meta } = await search({});
      expect(ids(data)).toEqual([1200, 1100, 1000, 900, 800, 700, 600, 500, 400, 300, 200, 100]);
      expect(meta).toMatchObject({ total: 1200, searched: 1200, next: null, warnings: [] });
    });

    it("walks on from where it ended, in either order, and meets each once", async () => {
      for (const order of ["asc", "desc"] as const) {
        const found: number[] = [];
        let searched = 0;
        for (let after: number | undefined; ;) {
          const { data, meta } = await search({ order, limit: 5, ...(after === undefined ? {} : { after }) });
          found.push(...ids(data));
          searched += meta.searched!;
          if (meta.next === null) break;
          after = meta.next;
        }
        expect(found.toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: 12 }, (_, index) => 100 * (index + 1)),
        );
        expect(searched).toBe(1200);
      }
    });

    it("keeps to the other parameters", async () => {
      expect(ids((await search({ action: "b" })).data)).toEqual([]);
      expect(ids((await search({ after: 300 })).data)).toEqual([200, 100]);
    });

    it("warns of what is probably a slip", async () => {
      const slip = JSON.stringify({ requird: ["country"] });
      const { meta } = await under.evreg.events.list({ where: slip, limit: 1 });
      expect(meta.warnings).toHaveLength(1);
    });
  });

  describe("searching events by the key of an ordered subscription", () => {
    const under = useEvreg(open);

    it("finds those with a delivery of this key, which shows it", async () => {
      const { evreg } = under;
      await evreg.actions.create(newAction({ action: "a", application: "shop", schemata: ANY_OBJECT }));
      await subscribe(evreg, { action: "a", subscription: "one", ordered: { key: "/c" } });
      await subscribe(evreg, { action: "a", subscription: "two" });
      for (const c of ["C-17", 42, "42", "C-17", [1]]) await publish(evreg, newEvent({ c }, "a"));
      const found = async (query: EventQuery, port = evreg) => {
        const { data, meta } = await port.events.list(query);
        expect(meta).toMatchObject({ searched: expect.any(Number), next: null });
        return ids(data);
      };
      expect(await found({ key: "C-17" })).toEqual([4, 1]);
      expect(await found({ key: "42", order: "asc" })).toEqual([2, 3]);
      expect(await found({ key: "C-18" })).toEqual([]);
      expect(await found({ key: "C-17", outcome: "failed" })).toEqual([]);
      expect(await found({ key: "C-17", outcome: "unreceived" })).toEqual([4, 1]);
      expect(await found({ key: "C-17" }, await under.as(["read:shop"]))).toEqual([]);

      const deliveries = (await evreg.deliveries.list({ subscription: 1 })).data;
      const keys = await Promise.all(
        deliveries.map(async ({ rowid }) => (await evreg.deliveries.get(rowid)).data.key),
      );
      expect(keys).toEqual([undefined, "C-17", "42", "42", "C-17"]);
      const [other] = (await evreg.deliveries.list({ subscription: 2 })).data;
      expect((await evreg.deliveries.get(other!.rowid)).data).not.toHaveProperty("key");
    });
  });

  describe("searching events by their outcome", () => {
    const under = useEvreg(open);
    const found = async (query: EventQuery) => ids((await under.evreg.events.list(query)).data);

    it("finds those that nobody has received, and those that failed somewhere", async () => {
      const { evreg } = under;
      await evreg.actions.create(newAction({ action: "a", application: "shop", schemata: ANY_OBJECT }));
      await publish(evreg, newEvent({ n: 1 }, "a"));
      await subscribe(evreg, { action: "a", subscription: "one", max_retries: 0 });
      await subscribe(evreg, { action: "a", subscription: "two", application: "shop", max_retries: 0 });
      for (const n of [2, 3, 4]) await publish(evreg, newEvent({ n }, "a"));
      for (const claim of await claimDue(under)) {
        // The second event is received by one and fails at the other, the third fails everywhere, the fourth is under way.
        const { eventId } = claim.event;
        if (eventId === 4) continue;
        const isReceived = eventId === 2 && claim.subscription.subscriptionId === 1;
        await finishNow(under, claim, isReceived ? "delivered" : "failed");
      }
      expect(await found({ outcome: "unreceived" })).toEqual([4, 3, 1]);
      expect(await found({ outcome: "failed" })).toEqual([3, 2]);
      const where = JSON.stringify({ properties: { n: { const: 3 } } });
      expect(await found({ outcome: "failed", where })).toEqual([3]);
      const { meta } = await evreg.events.list({ outcome: "failed", limit: 1 });
      expect(meta).toMatchObject({ total: 4, searched: 2, next: 3, warnings: [] });
      expect(await found({ outcome: "failed", after: 3 })).toEqual([2]);
      // Of the second one it may not read that another application has received it.
      const { events } = await under.as(["read:shop"]);
      const seen = await events.list({ outcome: "unreceived" });
      expect(ids(seen.data)).toEqual([4, 3, 2, 1]);
    });
  });

  describe("searching events by a text", () => {
    const under = useSharedEvreg(open);
    const texts = ["FR", ":x", "::", "", "a/b", "é", 'say "hi"', "\u2028", "\u0001"];

    it.each(texts)(
      "finds %j however it is written, and beside whatever names the schema has",
      async (text) => {
        const { evreg } = under;
        const names = ["at", ", ", ":", "FR", "x", "_:"];
        const properties = Object.fromEntries(names.map((name) => [name, true]));
        const action = freshName();
        await evreg.actions.create(newAction({ action, schemata: { type: "object", properties } }));
        const json = JSON.stringify(text);
        const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
        const escaped = units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
        const payloads = [
          `{"at":${json}}`,
          `{"x":["",${json}, ":y"],"at":${json},"FR":1}`,
          `{", ":1,"at" : ${json} , ":":2}`,
          `{"at":"${escaped}"}`,
          `{"at":${JSON.stringify(`${text}?`)}}`,
        ];
        const rowids: number[] = [];
        for (const payload of payloads) rowids.push((await publish(evreg, rawEvent(payload, action))).rowid);
        const where = `{"properties":{"at":{"enum":[${json},"no such text"]}},"required":["at"]}`;
        const { data } = await evreg.events.list({ where, action, order: "asc" });
        expect(ids(data)).toEqual(rowids.slice(0, 4));
      },
    );
  });

  describe("a search by a text", () => {
    const under = useEvreg(open);

    it("counts what it looked at, whatever it could leave out", async () => {
      const { evreg } = under;
      await makeAny(under, "a");
      for (const country of ["FR", "DE", "DE", "FR", "DE"]) await publish(evreg, newEvent({ country }, "a"));
      const where = JSON.stringify({ properties: { country: { const: "FR" } }, required: ["country"] });
      const look = async (query: EventQuery) => {
        const { data, meta } = await evreg.events.list({ where, order: "asc", ...query });
        return [ids(data), meta.searched, meta.next];
      };
      expect(await look({})).toEqual([[1, 4], 5, null]);
      expect(await look({ limit: 1 })).toEqual([[1], 1, 1]);
      expect(await look({ limit: 1, after: 1 })).toEqual([[4], 3, 4]);
      expect(await look({ limit: 1, after: 4 })).toEqual([[], 1, null]);
    });
  });
}
