import { isAnnotation, isObject, type JsonObject } from "../keywords.ts";
import { evaluatedBy } from "./unevaluated.ts";
import type { Source } from "./source.ts";

interface Place {
  readonly source: Source;
  /** Of the schema in the source. */
  readonly pointer: string;
  /** Called for what has no counterpart; throws unless it is to be left out. */
  readonly lose: (keyword: string, message: string) => void;
}

const BESIDE = ["$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies"];

/**
 * A schema of 2020-12 said with keywords of draft-07. The schemas inside are translated already.
 *
 * | 2020-12 | draft-07 |
 * | --- | --- |
 * | `prefixItems` and `items` | `items` and `additionalItems` |
 * | `dependentRequired`, `dependentSchemas` | `dependencies` |
 * | `minContains: 0` | no `contains` |
 * | `unevaluatedProperties`, where each payload has the same members evaluated | `additionalProperties`, those members named |
 * | `unevaluatedItems`, where nothing else looks at the list | `additionalItems` or `items` |
 * | keywords beside `$ref` | `allOf` with the `$ref` |
 */
export function withoutNewer(schema: JsonObject, place: Place): JsonObject {
  const members = new Map(Object.entries(schema));
  closeObject(members, place);
  closeList(members, place);
  boundContains(members, place);
  const ordered = [...members].map(([keyword, value]): [string, unknown] => {
    if (!members.has("prefixItems")) return [keyword, value];
    if (keyword === "prefixItems") return ["items", value];
    return [keyword === "items" ? "additionalItems" : keyword, value];
  });
  return referenceInside(Object.fromEntries(joinDependencies(ordered)));
}

function closeObject(members: Map<string, unknown>, { source, pointer, lose }: Place): void {
  const rest = members.get("unevaluatedProperties");
  members.delete("unevaluatedProperties");
  if (rest === undefined || rest === true) return;
  const { names, patterns, all, isSure } = evaluatedBy(source, pointer);
  if (all) return;
  if (!isSure) {
    const message =
      "unevaluatedProperties depends on which branches of anyOf, oneOf, if or dependentSchemas a payload takes";
    return lose("unevaluatedProperties", message);
  }
  allow(members, "properties", names);
  allow(members, "patternProperties", patterns);
  members.set("additionalProperties", rest);
}

/** Names what is looked at elsewhere, so that `additionalProperties` leaves it alone. */
function allow(members: Map<string, unknown>, keyword: string, names: ReadonlySet<string>): void {
  if (names.size === 0) return;
  const own = Object.entries((members.get(keyword) ?? {}) as JsonObject);
  const named = new Set(own.map(([name]) => name));
  const others = [...names].filter((name) => !named.has(name)).map((name): [string, unknown] => [name, true]);
  members.set(keyword, Object.fromEntries([...own, ...others]));
}

function closeList(members: Map<string, unknown>, { lose }: Place): void {
  const rest = members.get("unevaluatedItems");
  members.delete("unevaluatedItems");
  if (rest === undefined || rest === true || members.has("items")) return;
  const beside = [...BESIDE, "contains"].find((keyword) => members.has(keyword));
  if (beside !== undefined)
    return lose("unevaluatedItems", `unevaluatedItems depends on ${beside} beside it`);
  members.set("items", rest);
}

function boundContains(members: Map<string, unknown>, { lose }: Place): void {
  const [least, most] = [members.get("minContains") ?? 1, members.get("maxContains")];
  members.delete("minContains");
  members.delete("maxContains");
  if (!members.has("contains")) return;
  if (most !== undefined) lose("maxContains", "maxContains counts the items that fit");
  if (least === 0) members.delete("contains");
  else if (least !== 1) lose("minContains", "minContains counts the items that fit");
}

function joinDependencies(entries: readonly [string, unknown][]): [string, unknown][] {
  const keywords = new Set(["dependencies", "dependentRequired", "dependentSchemas"]);
  const found = entries.filter(([keyword, value]) => keywords.has(keyword) && isObject(value));
  if (found.length === 0) return [...entries];
  const byName = new Map<string, unknown[]>();
  for (const [name, needed] of found.flatMap(([, value]) => Object.entries(value as JsonObject))) {
    byName.set(name, [...(byName.get(name) ?? []), needed]);
  }
  const joined = [...byName].map(([name, all]): [string, unknown] => {
    const schemas = all.map((needed) => (Array.isArray(needed) ? { required: needed as unknown[] } : needed));
    return [name, all.length === 1 ? all[0] : { allOf: schemas }];
  });
  return [...entries.filter((entry) => !found.includes(entry)), ["dependencies", Object.fromEntries(joined)]];
}

/** In draft-07 nothing beside a `$ref` counts. */
function referenceInside(schema: JsonObject): JsonObject {
  const { $ref, ...others } = schema;
  if ($ref === undefined || Object.keys(others).every((keyword) => isAnnotation(keyword))) return schema;
  const all = Array.isArray(others["allOf"]) ? (others["allOf"] as unknown[]) : [];
  return { ...others, allOf: [{ $ref }, ...all] };
}
