import { isObject } from "../keywords.ts";
import { word } from "./type-tree.ts";
import type { TypeTree } from "./type-tree.ts";
import { scalarLiteral } from "./write-text.ts";

/** The type that only one value of JSON has. */
export function literalOf(value: unknown): TypeTree {
  if (Array.isArray(value)) {
    const items = (value as unknown[]).map((item) => ({ type: literalOf(item), optional: false }));
    return { kind: "tuple", items, rest: undefined };
  }
  if (isObject(value)) {
    const members = Object.entries(value).map(([name, member]) => ({
      name,
      type: literalOf(member),
      optional: false,
      comment: [],
    }));
    return { kind: "object", members, index: members.length === 0 ? word("never") : undefined };
  }
  return word(scalarLiteral(value as string | number | boolean | null) ?? "number");
}
