import { pointerSteps, pointerTo } from "../../../json/pointer.ts";

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What a schema that refers to itself could have without end. */
const MOST_VISITS = 5_000;
const DEEPEST = 32;

/** Keywords whose schema is about the same value. */
const SAME = ["not", "if", "then", "else"];
const SAME_LISTS = ["allOf", "anyOf", "oneOf"];

interface Visit {
  readonly schema: unknown;
  /** The place in the schema. */
  readonly pointer: string;
  /** The place in payloads; `*` for all places of a list. */
  readonly place: string;
  readonly depth: number;
}

/** The schemas one step inside of another, each with where in a payload it holds. */
function* inside(root: unknown, { schema, pointer, place, depth }: Visit): Generator<Visit> {
  if (!isObject(schema)) return;
  const at = (keyword: string, inner: unknown, where = place): Visit => ({
    schema: inner,
    pointer: `${pointer}/${keyword}`,
    place: where,
    depth: depth + 1,
  });
  const { $ref: reference, properties, items } = schema;
  if (typeof reference === "string" && reference.startsWith("#")) {
    const target = decodeURIComponent(reference.slice(1));
    yield { schema: valueAt(root, target), pointer: target, place, depth: depth + 1 };
  }
  if (isObject(properties)) {
    for (const [name, inner] of Object.entries(properties)) {
      yield at(pointerTo("properties", name), inner, pointerTo(place, name));
    }
  }
  if (Array.isArray(items)) {
    for (const [index, inner] of items.entries()) yield at(`items/${index}`, inner, `${place}/${index}`);
  } else if (items !== undefined) yield at("items", items, `${place}/*`);
  for (const keyword of ["additionalItems", "contains"]) {
    if (schema[keyword] !== undefined) yield at(keyword, schema[keyword], `${place}/*`);
  }
  for (const keyword of SAME) if (schema[keyword] !== undefined) yield at(keyword, schema[keyword]);
  for (const keyword of SAME_LISTS) {
    const branches = schema[keyword];
    if (!Array.isArray(branches)) continue;
    for (const [index, inner] of branches.entries()) yield at(`${keyword}/${index}`, inner);
  }
}

/** All places of payloads, by the pointers of the schemas that hold there. */
export function placesIn(root: unknown): ReadonlyMap<string, ReadonlySet<string>> {
  const places = new Map<string, Set<string>>();
  const waiting: Visit[] = [{ schema: root, pointer: "", place: "", depth: 0 }];
  for (let index = 0; index < waiting.length && index < MOST_VISITS; index += 1) {
    const visit = waiting[index]!;
    const known = places.get(visit.pointer);
    if (known?.has(visit.place) === true) continue;
    places.set(visit.pointer, (known ?? new Set()).add(visit.place));
    if (visit.depth < DEEPEST) waiting.push(...inside(root, visit));
  }
  return places;
}

/**
 * The places in payloads that a pointer into a schema is about: those of the innermost schema around it.
 * @returns `rest`: what is left of the pointer there, such as `/required/2`
 */
export function placesFor(
  places: ReadonlyMap<string, ReadonlySet<string>>,
  pointer: string,
): { readonly places: readonly string[]; readonly rest: string } {
  for (let end = pointer.length; ; end = pointer.lastIndexOf("/", end - 1)) {
    const place = places.get(pointer.slice(0, end));
    if (place !== undefined) return { places: [...place], rest: pointer.slice(end) };
    if (end <= 0) return { places: [], rest: pointer };
  }
}

export function valueAt(root: unknown, pointer: string): unknown {
  let value = root;
  for (const step of pointerSteps(pointer)) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Json)[step];
  }
  return value;
}
