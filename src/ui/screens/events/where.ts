import { SEARCH_LIMITS } from "../../../domain/event.ts";
import { pointerSteps } from "../../../json/pointer.ts";

/** What a search for payloads is asked for, or what is wrong with it. */
type Where = { readonly schema: string } | { readonly wrong: string };

/** A member that a payload must have, on the way to a value or with one. */
interface Place {
  readonly members: Map<string, Place>;
  readonly items: Place[];
  /** The value as JSON. */
  value?: string;
}

const STEP = /^(?:([^.[\]"]+)|\[(\d{1,3})\]|\[("(?:[^"\\]|\\.)*")\])/s;
const MOST_STEPS = 64;
/** The last space before another path and its `=`; names in quotes may hold anything. */
const NEXT_MEMBER = /\s(?=(?:[^\s="]|\["(?:[^"\\]|\\.)*"\])+=)/s;

/**
 * The JSON Schema, as JSON, of what a person looks for.
 * @param text a schema that begins with a brace, or any number of `country=FR`, `customer.id=7` and `/customer/id=7`, with spaces
 *   between; as in the command line a value is JSON, or else a text
 */
export function whereSchema(text: string): Where {
  if (text.length > SEARCH_LIMITS.whereLength) return { wrong: "where is too long." };
  if (text.trimStart().startsWith("{")) {
    try {
      JSON.parse(text);
      return { schema: text };
    } catch (error) {
      return { wrong: `where is no JSON: ${(error as Error).message}` };
    }
  }
  const root: Place = newPlace();
  for (const typed of text.trim().split(NEXT_MEMBER)) {
    const member = typed.trim();
    const at = member.indexOf("=");
    const place = at < 1 ? undefined : placeIn(root, member.slice(0, at));
    if (place === undefined || holds(place))
      return {
        wrong:
          "where takes members such as country=FR, customer.id=7 or /sender/login=ada, each place once, or a JSON Schema.",
      };
    place.value = valueOf(member.slice(at + 1));
  }
  return { schema: schemaOf(root) };
}

const newPlace = (): Place => ({ members: new Map(), items: [] });

/** Whether something is asked of the place or what is in it. */
const holds = ({ value, members, items }: Place): boolean =>
  value !== undefined || members.size + items.length > 0;

/**
 * Walks `items[0].sku`, `["odd name"].x` or a JSON Pointer, and makes what is not there yet; `undefined` for what is no such
 * path.
 */
function placeIn(root: Place, path: string): Place | undefined {
  if (path.startsWith("/")) return placeAt(root, path);
  let rest = path;
  let place: Place | undefined = root;
  for (let steps = 0; rest !== ""; steps += 1) {
    const [whole, name, index, quoted] = STEP.exec(rest) ?? [];
    if (whole === undefined || place === undefined || steps === MOST_STEPS) return undefined;
    rest = rest.slice(whole.length);
    if (rest.startsWith(".")) rest = rest.slice(1);
    place =
      index !== undefined
        ? itemOf(place, Number(index))
        : memberOf(place, quoted === undefined ? name : textIn(quoted));
  }
  return place;
}

/** A number in the pointer is a place in a list. */
function placeAt(root: Place, pointer: string): Place | undefined {
  const steps = pointerSteps(pointer);
  if (steps.length > MOST_STEPS) return undefined;
  let place: Place | undefined = root;
  for (const step of steps) {
    if (place === undefined) return undefined;
    place = /^(?:0|[1-9]\d{0,2})$/.test(step) ? itemOf(place, Number(step)) : memberOf(place, step);
  }
  return place;
}

/** The text of a name in quotes, if it is JSON. */
function textIn(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}

/** `undefined` where the place is to be something else than a list. */
function itemOf(place: Place, index: number): Place | undefined {
  if (place.value !== undefined || place.members.size > 0) return undefined;
  while (place.items.length <= index) place.items.push(newPlace());
  return place.items[index];
}

/** `undefined` without a name, and where the place is to be something else than an object. */
function memberOf(place: Place, name: string | undefined): Place | undefined {
  if (name === undefined || place.value !== undefined || place.items.length > 0) return undefined;
  const member = place.members.get(name) ?? newPlace();
  place.members.set(name, member);
  return member;
}

/** What was typed if that is JSON, so that no number is rounded; else that text as a string. */
function valueOf(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    return JSON.stringify(text);
  }
}

function schemaOf({ members, items, value }: Place): string {
  if (value !== undefined) return `{"const":${value}}`;
  if (items.length > 0) {
    return `{"type":"array","items":[${items.map(schemaOf).join()}],"minItems":${items.length}}`;
  }
  if (members.size === 0) return "{}";
  const named = [...members].map(([name, place]) => `${JSON.stringify(name)}:${schemaOf(place)}`);
  return `{"type":"object","properties":{${named.join()}},"required":${JSON.stringify([...members.keys()])}}`;
}
