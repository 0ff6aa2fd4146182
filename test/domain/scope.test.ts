import { describe, expect, it } from "vitest";
import { checkScope, parseScope } from "../../src/domain/token.ts";

describe("parseScope", () => {
  it.each([
    ["publish", { name: "publish" }],
    ["admin", { name: "admin" }],
    ["read:billing", { name: "read", application: "billing" }],
    ["write:a:b", { name: "write", application: "a:b" }],
    ["", undefined],
    ["read:", undefined],
    ["reads", undefined],
    ["toString", undefined],
    [" read", undefined],
    [":billing", undefined],
  ])("reads %j", (scope, expected) => {
    expect(parseScope(scope)).toEqual(expected);
  });
});

describe("checkScope", () => {
  it("trims the application", () => {
    expect(checkScope("scopes[0]", "read: Sales ")).toBe("read:Sales");
  });

  it.each(["read:  ", "read:a\u0000", "x", 7, null])("refuses %j with its field", (value) => {
    expect(() => checkScope("scopes[3]", value)).toThrow(/^scopes\[3\]: /);
  });
});
