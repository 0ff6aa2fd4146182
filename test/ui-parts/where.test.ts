import { expect, it } from "vitest";
import { SEARCH_LIMITS } from "../../src/domain/event.ts";
import { whereSchema } from "../../src/ui/screens/events/where.ts";
import { memberText } from "../../src/ui/parts/json-tokens.ts";

const schemaOf = (text: string): unknown => {
  const where = whereSchema(text);
  return "schema" in where ? JSON.parse(where.schema) : where.wrong;
};

it("makes a schema of what members are to be", () => {
  expect(schemaOf("country=FR customer.id=7")).toEqual({
    type: "object",
    properties: {
      country: { const: "FR" },
      customer: { type: "object", properties: { id: { const: 7 } }, required: ["id"] },
    },
    required: ["country", "customer"],
  });
  expect(schemaOf('items[1].sku="A 1"')).toEqual({
    type: "object",
    properties: {
      items: {
        type: "array",
        items: [{}, { type: "object", properties: { sku: { const: "A 1" } }, required: ["sku"] }],
        minItems: 2,
      },
    },
    required: ["items"],
  });
  expect(schemaOf('["odd name"].x=true')).toMatchObject({ required: ["odd name"] });
});

it("keeps numbers as they were typed, and texts with spaces and signs", () => {
  expect(whereSchema("id=12345678901234567890")).toMatchObject({
    schema: expect.stringContaining('{"const":12345678901234567890}'),
  });
  expect(schemaOf("name=Ada Lovelace")).toMatchObject({ properties: { name: { const: "Ada Lovelace" } } });
  expect(schemaOf("sum=a=b")).toMatchObject({ properties: { sum: { const: "a=b" } } });
});

it("takes a schema as it is, and says what is none", () => {
  expect(whereSchema('{"required": ["a"]}')).toEqual({ schema: '{"required": ["a"]}' });
  for (const text of ['{"a"', "country", "=x", "a..b=1", "a[x]=1", '["\\x"]=1', '["\n"]=1', '["\\x"].a=1'])
    expect(whereSchema(text)).toHaveProperty("wrong");
});

it("refuses what is asked twice of a place, or of what is in a value", () => {
  for (const text of ["a=1 a=2", "a=1 a.b=2", "a.b=2 a=1", "a[0]=1 a.b=2", "/a/b=1 /a/0=2", "a[1]=1 a=2"])
    expect([text, whereSchema(text)]).toEqual([text, { wrong: expect.stringContaining("each place once") }]);
});

it("takes as much as the server, and is quick with all of it", () => {
  const { whereLength } = SEARCH_LIMITS;
  expect(schemaOf(`a=${"x".repeat(whereLength - 2)}`)).toHaveProperty("required");
  expect(whereSchema(`a=${"x".repeat(whereLength - 1)}`)).toHaveProperty("wrong");
  const spaces = " ".repeat(whereLength - 10);
  expect(schemaOf(`a=1${spaces}b=2`)).toEqual(schemaOf("a=1 b=2"));
  expect(schemaOf(`a=1${spaces}b`)).toMatchObject({ properties: { a: { const: `1${spaces}b` } } });
  const startedMs = performance.now();
  for (let tries = 0; tries < 50; tries += 1) whereSchema(`a${spaces}b`);
  expect(performance.now() - startedMs).toBeLessThan(200);
});

it("finds the exact text of a member, past values of any form", () => {
  const text = '{ "a":{"b":"}]\\"{","c":[1,{"data":2}]},"e":1e5 , "data" :12.50,"last":"x\\\\" }';
  expect(memberText(text, "data")).toBe("12.50");
  expect(memberText(text, "a")).toBe('{"b":"}]\\"{","c":[1,{"data":2}]}');
  expect(memberText(text, "e")).toBe("1e5");
  expect(memberText(text, "last")).toBe('"x\\\\"');
  expect(memberText(text, "none")).toBeUndefined();
  expect(memberText("{}", "data")).toBeUndefined();
});

it("takes a JSON Pointer for the member", () => {
  expect(schemaOf("/sender/login=X")).toEqual(schemaOf("sender.login=X"));
  expect(schemaOf("/items/1/sku=7 /items/0/a~1b=true")).toEqual(
    schemaOf('items[1].sku=7 items[0]["a/b"]=true'),
  );
});
