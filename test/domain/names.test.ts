import { describe, expect, test } from "vitest";
import { checkActionName, checkLabel, nextVersionName } from "../../src/domain/names.ts";
import { words } from "../support/words.ts";
import { refusal } from "./refusal.ts";

describe("an action's name", () => {
  const odd = ["", "a b", "a\n", "a\u0000", "x".repeat(129), "user.created ", 5, null, undefined, {}];
  test.each([...words(". a. .a a..b a/b ä"), ...odd])("a bad one is refused (%#)", (name) => {
    const error = refusal(() => checkActionName("action", name));
    expect(error.code).toBe("invalid");
    expect(error.details["field"]).toBe("action");
  });

  test("a very long one is not repeated in full", () => {
    expect(String(refusal(() => checkActionName("action", "x".repeat(1e6))).details["value"])).toHaveLength(
      129,
    );
  });
});

describe("a label", () => {
  test.each([
    ["billing", "billing"],
    ["  Order Service \n", "Order Service"],
    ["größe 😀", "größe 😀"],
    ["😀".repeat(128), "😀".repeat(128)],
  ])("a good one is taken, trimmed (%#)", (given, label) => {
    expect(checkLabel("application", given)).toBe(label);
  });

  const unprintable = ["", "   ", "a\u0000b", "a\nb", "a\u202eb", "a\u200bb", "a\u2028b", "\ud800"];
  const tooLong = ["x".repeat(129), "😀".repeat(129), "x".repeat(1e6)];
  test.each([...unprintable, ...tooLong, 5, null])("a bad one is refused (%#)", (label) => {
    expect(refusal(() => checkLabel("application", label)).code).toBe("invalid");
  });
});

describe("the suggested name of a next version", () => {
  test.each([
    ["user.created", "user.created.v2"],
    ["user.created.v2", "user.created.v3"],
    ["user.created.v9", "user.created.v10"],
    ["user.v2.created", "user.v2.created.v2"],
    ["user.created.v0", "user.created.v0.v2"],
    ["user.created.v02", "user.created.v02.v2"],
    ["v2", "v2.v2"],
    ["user.rev2", "user.rev2.v2"],
    ["x".repeat(128), `${"x".repeat(125)}.v2`],
    [`${"x".repeat(124)}.yyy`, `${"x".repeat(124)}.v2`],
    [`a.v${"9".repeat(9)}`, "a.v1000000000"],
    [`a.v${"9".repeat(20)}`, `a.v${"9".repeat(20)}.v2`],
  ])("follows the last (%#)", (name, next) => {
    expect(nextVersionName(name)).toBe(next);
    expect(checkActionName("action", next)).toBe(next);
  });
});
