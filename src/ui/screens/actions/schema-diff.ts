import { diffArrays } from "diff";
import type { SchemaBreak } from "../../../domain/action.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { pathNamed, pointerSteps, pointerTo } from "../../../json/field-path.ts";
import { indentedLines, type Piece } from "../../parts/json-tokens.ts";

/** A line of indented JSON, and where its value is. */
export interface JsonLine {
  readonly pieces: readonly Piece[];
  /** JSON pointer of the value that begins in the line, or that its bracket closes. */
  readonly pointer: string;
  /** Equal for two lines that say the same at the same place, whatever stands before them in a list, and behind a comma. */
  readonly key: string;
}

interface Container {
  readonly pointer: string;
  /** The pointer with `*` for each place in a list. */
  readonly pattern: string;
  readonly isList: boolean;
  items: number;
}

/** @param text well-formed JSON */
export function jsonLines(text: string): readonly JsonLine[] {
  const open: Container[] = [];
  return indentedLines(text).map((pieces) => {
    const said = pieces.filter(({ kind }) => kind !== "space");
    const first = said[0]?.text ?? "";
    const words = textOf(said.at(-1)?.text === "," ? said.slice(0, -1) : said);
    if (first === "}" || first === "]") {
      const { pointer, pattern } = open.pop() ?? { pointer: "", pattern: "" };
      return { pieces, pointer, key: `${pattern} ${words}` };
    }
    const { pointer, pattern } = placeIn(open.at(-1), said[0]);
    const last = said.at(-1)?.text;
    if (last === "{" || last === "[") open.push({ pointer, pattern, isList: last === "[", items: 0 });
    return { pieces, pointer, key: `${pattern} ${words}` };
  });
}

function placeIn(
  parent: Container | undefined,
  first: Piece | undefined,
): { readonly pointer: string; readonly pattern: string } {
  if (parent === undefined) return { pointer: "", pattern: "" };
  if (parent.isList) {
    parent.items += 1;
    return { pointer: `${parent.pointer}/${parent.items - 1}`, pattern: `${parent.pattern}/*` };
  }
  const step = JSON.parse(first?.text ?? '""') as string;
  return { pointer: pointerTo(parent.pointer, step), pattern: pointerTo(parent.pattern, step) };
}

const textOf = (pieces: readonly Piece[]): string => pieces.map(({ text }) => text).join(" ");

/** A line of what two schemas say: of both, or of one. */
export interface DiffRow {
  readonly sign: " " | "-" | "+";
  /** Number of the line, from 1. */
  readonly before: number | null;
  readonly after: number | null;
  readonly line: JsonLine;
}

/** Schemas that differ in more lines are shown as wholly changed: to compare them would stop the page for seconds. */
const MOST_EDITS = 1_000;

/** The lines of two JSON texts, each as it is indented. A comma alone is no difference. */
export function diffRows(before: string, after: string): readonly DiffRow[] {
  const [old, next] = [jsonLines(before), jsonLines(after)];
  const parts = diffArrays(keysOf(old), keysOf(next), { maxEditLength: MOST_EDITS }) ?? [
    { removed: true, added: false, count: old.length },
    { removed: false, added: true, count: next.length },
  ];
  const rows: DiffRow[] = [];
  let [at, to] = [0, 0];
  for (const { removed, added, count } of parts) {
    for (let index = 0; index < count; index += 1) {
      const line = removed ? old[at]! : next[to]!;
      if (!added) at += 1;
      if (!removed) to += 1;
      const sign = removed ? "-" : added ? "+" : " ";
      rows.push({ sign, before: added ? null : at, after: removed ? null : to, line });
    }
  }
  return rows;
}

const keysOf = (lines: readonly JsonLine[]): string[] => lines.map(({ key }) => key);

/** Rows that follow each other, and are shown or folded. */
export interface Fold {
  readonly start: number;
  /** The index behind the last one. */
  readonly end: number;
  readonly isShown: boolean;
}

const CONTEXT_ROWS = 3;
/** Fewer alike ones are shown: saying so would take a line itself. */
const LEAST_FOLDED = 3;

/**
 * Folds the rows that are alike, and not near what differs.
 * @param kept indexes of rows that are shown all the same
 */
export function foldedRows(rows: readonly DiffRow[], kept: ReadonlySet<number> = new Set()): readonly Fold[] {
  const isNear = new Uint8Array(rows.length);
  for (const [index, { sign }] of rows.entries()) {
    if (sign === " " && !kept.has(index)) continue;
    isNear.fill(1, Math.max(0, index - CONTEXT_ROWS), index + CONTEXT_ROWS + 1);
  }
  const folds: Fold[] = [];
  for (let start = 0; start < rows.length;) {
    let end = start;
    while (end < rows.length && isNear[end] === isNear[start]) end += 1;
    folds.push({ start, end, isShown: isNear[start] === 1 || end - start < LEAST_FOLDED });
    start = end;
  }
  return folds;
}

export const parentOf = (pointer: string): string => pointer.slice(0, Math.max(0, pointer.lastIndexOf("/")));

/** Where what somebody says of a schema is pinned: by index of the row, the numbers of what is said, from 1. */
export type Pins = ReadonlyMap<number, readonly number[]>;

/** Where a break is, in the schema and in payloads. */
export type BreakPlace = Pick<SchemaBreak, "pointer" | "field">;

/**
 * Finds the row of each break: a changed line at its pointer, rather one with the name of its property; else the line that
 * the pointer names, or the nearest around it.
 */
export function pinsOf(rows: readonly DiffRow[], breaks: readonly BreakPlace[]): Pins {
  const pins = new Map<number, number[]>();
  for (const [number, broken] of breaks.entries()) {
    const at = rowOf(rows, broken);
    if (at !== -1) pins.set(at, [...(pins.get(at) ?? []), number + 1]);
  }
  return pins;
}

/** Breaks in the order of the rows that they are pinned to, so that their numbers rise. */
export function inOrder<B extends BreakPlace>(rows: readonly DiffRow[], breaks: readonly B[]): readonly B[] {
  const placed = breaks.map((broken) => ({ broken, at: rowOf(rows, broken) }));
  return placed.toSorted((one, other) => one.at - other.at).map(({ broken }) => broken);
}

const rowOf = (rows: readonly DiffRow[], { pointer, field }: BreakPlace): number =>
  rowFor(rows, pointer, JSON.stringify(pathNamed(field).at(-1)));

function rowFor(rows: readonly DiffRow[], pointer: string, name: string | undefined): number {
  let best = -1;
  let bestWorth = 0;
  for (const [index, { sign, line }] of rows.entries()) {
    const isAt = line.pointer === pointer;
    if (!isAt && !line.pointer.startsWith(`${pointer}/`)) continue;
    const isNamed = line.pieces.some(({ kind, text }) => kind === "string" && text === name);
    const worth = (isNamed ? 8 : 0) + (sign === " " ? 0 : 4) + (sign === "+" ? 2 : 0) + (isAt ? 1 : 0);
    if (worth > bestWorth) [best, bestWorth] = [index, worth];
  }
  if (best !== -1 || pointer === "") return best === -1 && rows.length > 0 ? 0 : best;
  return rowFor(rows, parentOf(pointer), name);
}

/** What changed, in a few words: `+ customer.country and 2 more`. */
export function changeInShort(before: string, after: string): string {
  const changed = diffRows(before, after).filter(({ sign }) => sign !== " ");
  const byPlace = Map.groupBy(changed, ({ line }) => placeName(line.pointer));
  // A field that was added is named before the list of what is required, which it may be in as well.
  const [first, ...others] = [...byPlace].toSorted(
    ([one], [other]) => Number(one === "") - Number(other === ""),
  );
  if (first === undefined) return "nothing but its form";
  const [place, rows] = first;
  const signs = new Set(rows.map(({ sign }) => sign));
  const sign = signs.size === 2 ? "~" : signs.has("+") ? "+" : "−";
  return `${sign} ${place || "the schema"}${others.length === 0 ? "" : ` and ${others.length} more`}`;
}

/** The member of payloads that a place in a schema is about, within its definition: `customer.lines[]`. */
function placeName(pointer: string): string {
  const steps = pointerSteps(pointer);
  const isDefined = steps[0] === "definitions" || steps[0] === "$defs";
  const names = isDefined ? steps.slice(1, 2) : [];
  for (let at = isDefined ? 2 : 0; at < steps.length; at += 1) {
    if (steps[at] === "properties" && at + 1 < steps.length) names.push(steps[(at += 1)]!);
    else if (steps[at] === "items") names.push(`${names.pop() ?? ""}[]`);
    else break;
  }
  return names.join(".");
}

/** `/customer/lines/*` as `customer.lines[]`. */
const fieldName = (place: string): string => pointerSteps(place).join(".").replaceAll(".*", "[]");

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
