import { describe, expect, it } from "vitest";
import type { EventQuery } from "../../src/domain/event.ts";
import type { EvregErrorCode } from "../../src/domain/error.ts";
import { ANY_OBJECT, newAction, newEvent, refusal, useSharedEvreg } from "./harness.ts";
import type { EvregUnderTest, OpenEvreg } from "./harness.ts";

/** Events 1 to 1,200, of which each hundredth is from France. */
async function prepareMany({ evreg }: EvregUnderTest): Promise<void> {
  await evreg.actions.create(newAction({ action: "a", schemata: ANY_OBJECT }));
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

    it.each<[string, EvregErrorCode]>([
      ["{", "malformed"],
      ["[]", "malformed"],
      ['{"type":"objekt"}', "invalid"],
      ['{"$ref":"https://example.com/"}', "invalid"],
      [`{"description":"${"x".repeat(5_000)}"}`, "malformed"],
    ])("refuses %.30s", async (text, code) => {
      const { details } = await refusal(under.evreg.events.list({ where: text }), code);
      expect(details["field"]).toMatch(/^where/);
    });

    it("refuses a page number, as a search has no pages", async () => {
      expect(await refusal(search({ page: 2 }), "malformed")).toMatchObject({ details: { field: "page" } });
    });
  });
}
