import { describe, expect, it } from "vitest";
import type { EventQuery } from "../../src/domain/event.ts";
import {
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
  type EvregUnderTest,
  type OpenEvreg,
} from "./harness.ts";

/** Events 1 to 7, a minute apart from midnight on; the even ones of the action `b`. */
async function prepare(under: EvregUnderTest): Promise<void> {
  const { evreg, clock } = under;
  await makeAny(under, "a", "b");
  for (let n = 1; n <= 7; n++) {
    await publish(evreg, newEvent({ n }, n % 2 === 0 ? "b" : "a"));
    await clock.advance(60_000);
  }
}

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

export function eventListsContract(open: OpenEvreg): void {
  describe("listing events", () => {
    const under = useSharedEvreg(open, prepare);
    const rowids = async (query: EventQuery) => ids((await under.evreg.events.list(query)).data);

    it("is newest first by default", async () => {
      const { data, meta } = await under.evreg.events.list();
      expect(ids(data)).toEqual([7, 6, 5, 4, 3, 2, 1]);
      expect(data[0]).toMatchObject({ action: "a", revision: 1, timestamped: "2026-01-01T00:06:00.000Z" });
      expect(data[0]).not.toHaveProperty("application");
      expect(meta).toEqual({ total: 7, page: 1, per_page: 50 });
      expect(await rowids({ order: "asc" })).toEqual([1, 2, 3, 4, 5, 6, 7]);
      expect(await rowids({ order: "desc" })).toEqual([7, 6, 5, 4, 3, 2, 1]);
    });

    it("may be of one action, with its own total", async () => {
      const { data, meta } = await under.evreg.events.list({ action: "b", limit: 2 });
      expect(ids(data)).toEqual([6, 4]);
      expect(meta).toEqual({ total: 3, page: 1, per_page: 2 });
      expect(await under.evreg.events.list({ action: "unknown" })).toEqual({
        data: [],
        meta: { total: 0, page: 1, per_page: 50 },
      });
    });

    it.each([
      [{ from: "2026-01-01T00:05:00Z" }, [7, 6]],
      [{ from: "2026-01-01T00:05:00.001Z" }, [7]],
      [{ from: "2026-01-01T00:05:00.0000001Z" }, [7]],
      [{ to: "2026-01-01T00:01:00Z" }, [1]],
      [{ to: "2026-01-01T00:01:00.0000001Z" }, [2, 1]],
      [{ from: "2026-01-01T01:02:00+01:00", to: "2025-12-31T23:04:00-01:00" }, [4, 3]],
      [{ from: "2026-01-01T00:02Z", to: "2026-01-01T00:05Z", action: "a" }, [5, 3]],
      [{ from: "2027-01-01T00:00:00Z" }, []],
    ] as const)("in the range %j are %j", async (query, expected) => {
      const { data, meta } = await under.evreg.events.list(query);
      expect(ids(data)).toEqual(expected);
      expect(meta.total).toBe(expected.length);
    });

    it("has pages", async () => {
      const pages: number[][] = [];
      for (let page = 1; page <= 4; page++) {
        const { data, meta } = await under.evreg.events.list({ page, limit: 3 });
        expect(meta).toEqual({ total: 7, page, per_page: 3 });
        pages.push(ids(data));
      }
      expect(pages).toEqual([[7, 6, 5], [4, 3, 2], [1], []]);
    });

    it.each(["asc", "desc"] as const)("can be read page by page, %s", async (order) => {
      const walked: number[] = [];
      for (let after: number | undefined; ; after = walked.at(-1)) {
        const query = { order, limit: 2, action: "a", ...(after === undefined ? {} : { after }) };
        const { data, meta } = await under.evreg.events.list(query);
        expect(meta.total).toBe(4);
        if (data.length === 0) break;
        walked.push(...ids(data));
      }
      expect(walked).toEqual(order === "asc" ? [1, 3, 5, 7] : [7, 5, 3, 1]);
    });
  });

  describe("listing events while more come in", () => {
    const under = useEvreg(open, prepare);
    const rowids = async (query: EventQuery) => ids((await under.evreg.events.list(query)).data);

    it("is not confused by events published meanwhile", async () => {
      expect(await rowids({ limit: 3 })).toEqual([7, 6, 5]);
      await publish(under.evreg, newEvent({}, "a"));
      expect(await rowids({ limit: 3, after: 5 })).toEqual([4, 3, 2]);
      expect(await rowids({ order: "asc", after: 7 })).toEqual([8]);
    });
  });

  describe("listing events without their payloads", () => {
    const LARGE = 10_000;
    const under = useSharedEvreg(open, async (target) => {
      const { evreg } = target;
      await makeAny(target, "a");
      await publish(evreg, newEvent({ n: 1 }, "a"));
      await publish(evreg, newEvent({ n: 2, text: "x".repeat(LARGE) }, "a"));
    });
    const without = async (query: EventQuery) =>
      (await under.evreg.events.list({ payloads: false, ...query })).data.map((event) => [
        event.rowid,
        event.payload.text(),
      ]);
    const large = [2, "null"];

    it("says all else of each", async () => {
      expect(await without({})).toEqual([large, [1, "null"]]);
      const { data, meta } = await under.evreg.events.list({ payloads: false, limit: 1 });
      expect(data[0]).toMatchObject({ action: "a", revision: 1 });
      expect(meta).toEqual({ total: 2, page: 1, per_page: 1 });
    });

    it("finds one event, searches by payloads, and counts deliveries all the same", async () => {
      expect(await without({ after: 3, limit: 1 })).toEqual([large]);
      expect(await without({ where: '{"required":["text"]}' })).toEqual([large]);
      expect(await without({ where: '{"properties":{"n":{"const":3}}}' })).toEqual([]);
      const { data } = await under.evreg.events.list({ payloads: false, deliveries: true, limit: 1 });
      expect(data[0]).toMatchObject({ deliveries: {} });
    });

    it("has them where they are asked for", async () => {
      const { data } = await under.evreg.events.list({ payloads: true });
      expect(data[1]!.payload.text()).toBe('{"n":1}');
    });
  });

  describe("listing events with the counts of their deliveries", () => {
    const under = useSharedEvreg(open, async (target) => {
      const { evreg } = target;
      await makeAny(target, "a", "b");
      for (const subscription of ["one", "two", "three"])
        await subscribe(evreg, { subscription, action: "a", application: "crm", max_retries: 0 });
      await subscribe(evreg, { subscription: "four", action: "a", application: "shop" });
      await publish(evreg, newEvent({}, "a"));
      const [one, other] = await claimDue(target, 3);
      await finishNow(target, one!, "delivered");
      await finishNow(target, other!, "failed");
      await publish(evreg, newEvent({}, "b"));
      await publish(evreg, newEvent({}, "a"));
    });
    const counts = async (query: EventQuery, evreg = under.evreg) =>
      (await evreg.events.list({ deliveries: true, ...query })).data.map(({ rowid, deliveries }) => [
        rowid,
        deliveries,
      ]);

    it("has those of each state, and none for an event without", async () => {
      const first = { delivered: 1, failed: 1, delivering: 1, pending: 1 };
      expect(await counts({})).toEqual([
        [3, { pending: 4 }],
        [2, {}],
        [1, first],
      ]);
      expect(await counts({ order: "asc", limit: 1 })).toEqual([[1, first]]);
      expect(await counts({ where: "{}", after: 2 })).toEqual([[1, first]]);
    });

    it("has none unless they are asked for", async () => {
      for (const query of [{}, { deliveries: false }]) {
        const { data } = await under.evreg.events.list(query);
        for (const event of data) expect(event).not.toHaveProperty("deliveries");
      }
    });

    it("counts what the caller may read", async () => {
      expect(await counts({ action: "a" }, await under.as(["read:crm"]))).toMatchObject([
        [3, { pending: 3 }],
        [1, { delivered: 1, failed: 1 }],
      ]);
    });
  });

  describe("listing the event of an idempotency key", () => {
    const under = useSharedEvreg(open, async (target) => {
      await prepare(target);
      await publish(target.evreg, { ...newEvent({}, "a"), idempotency_key: "k-8" });
    });
    const rowids = async (query: EventQuery, evreg = under.evreg) =>
      ids((await evreg.events.list({ idempotency_key: "k-8", ...query })).data);

    it("finds it, unless another parameter leaves it out", async () => {
      expect(await under.evreg.events.list({ idempotency_key: "k-8" })).toMatchObject({
        data: [{ rowid: 8 }],
        meta: { total: 1, page: 1 },
      });
      expect(await rowids({ action: "a", order: "asc", from: "2026-01-01T00:07:00Z" })).toEqual([8]);
      for (const query of [
        { action: "b" },
        { to: "2026-01-01T00:07:00Z" },
        { after: 8 },
        { page: 2 },
        { idempotency_key: "k-9" },
      ]) {
        expect(await rowids(query)).toEqual([]);
      }
      expect(await rowids({}, await under.as(["read:shop"]))).toEqual([]);
      expect(await rowids({}, await under.as(["read:crm"]))).toEqual([8]);
    });
  });

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
