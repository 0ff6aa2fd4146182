import type { Difference } from "../schema/difference.ts";
import { printableJson, printableLine } from "./printable.ts";

/** Characters of a value; a whole subschema would hide where it stands. */
const LONGEST_VALUE = 120;
/** Differences named in one cell of a listing. */
const NAMED = 3;

const SIGN = { added: "+", removed: "-", changed: "~" } as const;

/** A difference as a line: `~ /properties/age/minimum: 0 → 18`. */
export function differenceLine(difference: Difference): string {
  const values = [];
  if ("was" in difference) values.push(shown(difference.was));
  if ("is" in difference) values.push(shown(difference.is));
  return `${place(difference)}: ${values.join(" → ")}`;
}

/** Many as one cell: where they are, and how many more there are. */
export function differencesInShort(differences: readonly Difference[]): string {
  const named = differences.slice(0, NAMED).map(place).join(", ");
  const more = differences.length - NAMED;
  return more > 0 ? `${named} and ${more} more` : named;
}

function place({ kind, pointer }: Difference): string {
  return `${SIGN[kind]} ${printableLine(pointer || "(root)")}`;
}

function shown(value: unknown): string {
  const json = printableJson(JSON.stringify(value));
  return json.length > LONGEST_VALUE ? `${json.slice(0, LONGEST_VALUE).toWellFormed()}…` : json;
}
