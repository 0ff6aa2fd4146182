import type { Subscription } from "../../../domain/subscription.ts";
import type { DiffRow } from "./schema-diff.ts";
import { placesFor, placesIn, valueAt } from "./payload-places.ts";
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
  const all = new Set<string>();
  for (const [pointer, places] of placesIn(filter)) {
    const required = valueAt(filter, `${pointer}/required`);
    for (const place of places) {
      if (place !== "") all.add(place);
      if (!Array.isArray(required)) continue;
      for (const name of required) all.add(pointerTo(place, String(name)));
    }
  }
  const list = [...all];
  return new Set(list.filter((place) => !list.some((other) => other.startsWith(`${place}/`))));
}

function fieldName(place: string): string {
  return pointerSteps(place).join(".").replaceAll(".*", "[]");
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

/** Keeps the fields that a change of the schema touches. */
export function touchedFields(
  used: readonly UsedField[],
  rows: readonly DiffRow[],
  before: unknown,
  after: unknown,
): readonly UsedField[] {
  if (used.length === 0) return [];
  const [old, next] = [placesIn(before), placesIn(after)];
  const touched = new Set<string>();
  const gone = new Set<string>();
  const keysOf = (wanted: DiffRow["sign"]): ReadonlySet<string> =>
    new Set(rows.flatMap(({ sign, line }) => (sign === wanted ? [line.key] : [])));
  const [removed, added] = [keysOf("-"), keysOf("+")];
  for (const { sign, line } of rows) {
    // What only moved says the same.
    if (sign === " " || (removed.has(line.key) && added.has(line.key))) continue;
    const [places, schema] = sign === "-" ? [old, before] : [next, after];
    const linePlaces = placesFor(places, line.pointer);
    const [, keyword, index] = linePlaces.rest.split("/");
    for (const place of linePlaces.places) {
      if (keyword === "required") {
        const name = index === undefined ? undefined : valueAt(schema, line.pointer);
        if (typeof name === "string") touched.add(pointerTo(place, name));
      } else if (linePlaces.rest !== "/properties") touched.add(place);
      if (linePlaces.rest === "") gone.add(place);
    }
  }
  return used.filter(
    ({ place }) => touched.has(place) || [...gone].some((one) => one !== "" && place.startsWith(`${one}/`)),
  );
}
