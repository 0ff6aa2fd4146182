import { describe, expect, it } from "vitest";
import type { Subscription } from "../../src/domain/subscription.ts";
import {
  changeInShort,
  diffRows,
  type DiffRow,
  foldedRows,
  pinsOf,
  jsonLines,
  brokenFields,
  usedFields,
} from "../../src/ui/screens/actions/schema-diff.ts";

const text = (value: unknown): string => JSON.stringify(value);
const textOf = ({ text: part }: { readonly text: string }): string => part;
const said = ({ line }: DiffRow): string => line.pieces.map(textOf).join("").trim();
const shown = (rows: readonly DiffRow[]): readonly string[] =>
  rows.filter(({ sign }) => sign !== " ").map((row) => `${row.sign} ${said(row)}`);

const large = (prefix: string): string =>
  text({ enum: Array.from({ length: 12_000 }, (_, index) => `${prefix}${index}`) });
const subscription = (filter: unknown, ordered: unknown): Subscription =>
  ({ application: "a", subscription: "b", filter, ordered }) as Subscription;

const LINE = { type: "object", required: ["sku"], properties: { sku: { type: "string" } } };
const ORDER = {
  type: "object",
  required: ["id", "customer"],
  properties: {
    id: { type: "string" },
    customer: { type: "object", properties: { country: { enum: ["DE", "FR", "IT"] } } },
    lines: { type: "array", items: { $ref: "#/definitions/line" } },
  },
  definitions: { line: LINE },
};

it("knows the place of the value on each line of JSON", () => {
  const lines = jsonLines('{"a/b":[1,{"c":{}}],"~":true}').map(({ pointer }) => pointer);
  expect(lines).toEqual(["", "/a~1b", "/a~1b/0", "/a~1b/1", "/a~1b/1/c", "/a~1b/1", "/a~1b", "/~0", ""]);
});

describe("the difference of two schemas", () => {
  it("is none where only white space and nothing else differs", () => {
    const rows = diffRows(text(ORDER), JSON.stringify(ORDER, null, 4));
    expect(shown(rows)).toEqual([]);
    expect(changeInShort(text(ORDER), text(ORDER))).toBe("nothing but its form");
  });

  it("is what was added behind an item, without the comma that came with it", () => {
    const rows = diffRows(text(ORDER), text({ ...ORDER, required: ["id", "customer", "total"] }));
    expect(shown(rows)).toEqual(['+ "total"']);
    expect(rows.findLast(({ sign }) => sign === " ")).toMatchObject({ before: 43, after: 44 });
  });

  it("takes no line for that of another member, however alike they are", () => {
    const { customer, lines, id: no } = ORDER.properties;
    const next = { ...ORDER, properties: { customer, lines, no } };
    const [gone, come] = ['- "id": {\n- "type": "string"\n- },', '+ "no": {\n+ "type": "string"\n+ }'];
    expect(shown(diffRows(text(ORDER), text(next))).join("\n")).toBe(`${gone}\n${come}`);
    expect(changeInShort(text(ORDER), text(next))).toBe("− id and 1 more");
  });

  it("is said in short with the definition that it is in", () => {
    const [before = "", after = ""] = [{ type: "string" }, { enum: ["DE"] }].map((items) =>
      text({ definitions: { customer: { properties: { country: { items } } } } }),
    );
    expect(changeInShort(before, after)).toBe("~ customer.country[]");
  });

  it("keeps numbers as they are written", () => {
    const rows = diffRows('{"maximum":9007199254740993}', '{"maximum":9007199254740992}');
    expect(shown(rows)).toEqual(['- "maximum": 9007199254740993', '+ "maximum": 9007199254740992']);
  });

  it("ends soon where nearly all differs", () => {
    const rows = diffRows(large("a"), large("b"));
    expect(rows.filter(({ sign }) => sign === "-")).toHaveLength(12_004);
    expect(rows.filter(({ sign }) => sign === "+")).toHaveLength(12_004);
  });

  it("ends soon where all lines only change their places", () => {
    const list = Array.from({ length: 3_000 }, (_, index) => `v${index}`);
    const rows = diffRows(text(list), text(list.toReversed()));
    expect(rows.filter(({ sign }) => sign !== "+").map(({ before }) => before)).toEqual(
      Array.from({ length: 3_002 }, (_, index) => index + 1),
    );
    expect(rows.filter(({ sign }) => sign !== "-")).toHaveLength(3_002);
  });

  it("leaves out what is alike, but for the lines around a change", () => {
    const next = { ...ORDER, definitions: { line: { ...LINE, title: "A line" } } };
    const rows = diffRows(text(ORDER), text(next));
    const folds = foldedRows(rows);
    expect(folds[0]).toMatchObject({ start: 0, isShown: false });
    expect(folds.map(({ start }) => start)).toEqual([0, ...folds.slice(0, -1).map(({ end }) => end)]);
    expect(folds.at(-1)!.end).toBe(rows.length);
    expect(folds.length).toBeLessThanOrEqual(3);
  });
});

it("pins a break to the changed line that it speaks of", () => {
  const required = ["id", "customer", "lines", "total"];
  const next = { ...ORDER, required, properties: { ...ORDER.properties, id: { type: "integer" } } };
  const rows = diffRows(text(ORDER), text(next));
  const pins = pinsOf(rows, [
    { pointer: "/required", field: "total" },
    { pointer: "/required", field: "lines" },
    { pointer: "/properties/id/type", field: "id" },
    { pointer: "/properties/gone/deep", field: "gone.deep" },
  ]);
  const lines = [...pins].map(([row, numbers]) => [said(rows[row]!), numbers]);
  expect(lines).toContainEqual(['"total"', [1]]);
  expect(lines).toContainEqual(['"lines",', [2]]);
  expect(lines).toContainEqual(['"type": "integer"', expect.arrayContaining([3])]);
  expect([...pins.values()].flat()).toHaveLength(4);
});

describe("the members that subscriptions look at", () => {
  const filter = {
    required: ["customer"],
    properties: { customer: { properties: { country: { enum: ["DE"] } } } },
  };

  it("are the innermost of a filter, and the key of an order", () => {
    const used = usedFields([subscription(filter, { key: "/customer/id" }), subscription(null, true)]);
    expect(used.map(({ field, by }) => `${by} ${field}`)).toEqual([
      "filter customer.country",
      "order customer.id",
    ]);
  });

  it("are named where a break is about them, or about what they are in", () => {
    const used = usedFields([subscription(filter, { key: "/lines/0/sku" })]);
    const brokenBy = (field: string): readonly string[] => brokenFields(used, field).map((one) => one.field);
    expect(brokenBy("customer.country")).toEqual(["customer.country"]);
    expect(brokenBy("customer")).toEqual(["customer.country"]);
    expect(brokenBy("lines[0].sku")).toEqual(["lines.0.sku"]);
    expect(brokenBy("customer.id")).toEqual([]);
    expect(brokenBy("")).toEqual([]);
  });
});
