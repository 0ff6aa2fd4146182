import type { Subscription } from "../../../domain/subscription.ts";
import { type DiffRow, fieldName, placeOf } from "./schema-diff.ts";
import { pointerSteps, pointerTo } from "../../../json/pointer.ts";
import { pathNamed } from "../../../json/field-path.ts";

/** A member of payloads that a subscription looks at. */
export interface UsedField {
  readonly subscription: Subscription;
  /** `customer.country` */
  readonly field: string;
  readonly place: string;
  readonly by: "filter" | "order";
}

/** The members that the filters and orders of subscriptions look at. */
export function usedFields(subscriptions: readonly Subscription[]): readonly UsedField[] {
  return subscriptions.flatMap((subscription) => {
    const { filter, ordered } = subscription;
    const filtered = filter === null ? [] : [...filteredPlaces(filter)];
    const orders = typeof ordered === "object" && ordered !== null ? [ordered.key] : [];
    const used = (by: UsedField["by"]) => (place: string) => ({
      subscription,
      field: fieldName(place),
      place,
      by,
    });
    return [...filtered.map(used("filter")), ...orders.map(used("order"))];
  });
}

/** Finds the innermost members: one that is looked into is not looked at itself. */
function filteredPlaces(filter: unknown): ReadonlySet<string> {
  const all = [...placesIn(filter, "")];
  return new Set(all.filter((place) => !all.some((other) => other.startsWith(`${place}/`))));
}

/** Keywords whose schemas are about the same value, and about the items of a list. */
const SAME = ["not", "if", "then", "else", "allOf", "anyOf", "oneOf"];
const ITEMS = ["items", "additionalItems", "contains"];

interface FilterSchema {
  readonly required?: readonly string[];
  readonly properties?: object;
}

/** The places in payloads that a schema speaks of, each as a JSON Pointer with `*` for all items of a list. */
function* placesIn(schema: unknown, place: string): Generator<string> {
  if (typeof schema !== "object" || schema === null) return;
  const keywords = schema as Readonly<Record<string, unknown>>;
  const { required = [], properties = {} } = schema as FilterSchema;
  yield place;
  for (const name of required) yield pointerTo(place, name);
  for (const [name, inner] of Object.entries(properties)) yield* placesIn(inner, pointerTo(place, name));
  for (const keyword of SAME) for (const inner of [keywords[keyword]].flat()) yield* placesIn(inner, place);
  for (const keyword of ITEMS)
    for (const inner of [keywords[keyword]].flat()) yield* placesIn(inner, `${place}/*`);
}

/** Keeps the fields that a break is about. @param broken its place in payloads: what is inside is broken, too */
export function brokenFields(used: readonly UsedField[], broken: string): readonly UsedField[] {
  const path = pathNamed(broken);
  if (path.length === 0) return [];
  return used.filter(({ place }) => {
    const steps = pointerSteps(place);
    // All places of a list are one.
    return path.every((step, index) => steps[index] === String(step) || steps[index] === "*");
  });
}

/**
 * Keeps the fields that a change of the schema touches, by its properties. Of a change in a definition, those at whose end the
 * same properties stand, wherever it is used.
 */
export function touchedFields(used: readonly UsedField[], rows: readonly DiffRow[]): readonly UsedField[] {
  const keysOf = (wanted: DiffRow["sign"]): ReadonlySet<string> =>
    new Set(rows.flatMap(({ sign, line }) => (sign === wanted ? [line.key] : [])));
  const [removed, added] = [keysOf("-"), keysOf("+")];
  // What only moved says the same.
  const changed = rows.filter(
    ({ sign, line: { key } }) => sign !== " " && !(removed.has(key) && added.has(key)),
  );
  const touched = changed.map(({ line }) => placeOf(line.pointer));
  return used.filter(({ place }) =>
    touched.some((one) =>
      one.definition === undefined
        ? one.place === place || (one.isWhole && place.startsWith(`${one.place}/`))
        : one.place !== "" && place.endsWith(one.place),
    ),
  );
}
