/** What a search for payloads is asked for, or what is wrong with it. */
type Where = { readonly schema: string } | { readonly wrong: string };

/** A member that a payload must have, on the way to a value or with one. */
interface Place {
  readonly members: Map<string, Place>;
  readonly items: Place[];
  /** As JSON. */
  value?: string;
}

const STEP = /^(?:([^.[\]"]+)|\[(\d{1,3})\]|\[("(?:[^"\\]|\\.)*")\])/s;
const MOST_STEPS = 64;

/**
 * The JSON Schema, as JSON, of what a person looks for.
 * @param text a schema that begins with a brace, or any number of `country=FR` and `customer.id=7`, with spaces between;
 *   as in the command line a value is JSON, or else a text
 */
export function whereSchema(text: string): Where {
  if (text.trimStart().startsWith("{")) {
    try {
      JSON.parse(text);
      return { schema: text };
    } catch (error) {
      return { wrong: `where is no JSON: ${(error as Error).message}` };
    }
  }
  const root: Place = newPlace();
  for (const member of text.trim().split(/\s+(?=[^\s="]+=)/)) {
    const at = member.indexOf("=");
    const place = at < 1 ? undefined : placeIn(root, member.slice(0, at));
    if (place === undefined) return { wrong: "where takes members such as country=FR, or a JSON Schema." };
    place.value = valueOf(member.slice(at + 1));
  }
  return { schema: schemaOf(root) };
}

const newPlace = (): Place => ({ members: new Map(), items: [] });

/** Walks `items[0].sku` or `["odd name"].x`, and makes what is not there yet; `undefined` for what is no such path. */
function placeIn(root: Place, path: string): Place | undefined {
  let rest = path;
  let place = root;
  for (let steps = 0; rest !== ""; steps += 1) {
    const [whole, name, index, quoted] = STEP.exec(rest) ?? [];
    if (whole === undefined || steps === MOST_STEPS) return undefined;
    rest = rest.slice(whole.length);
    if (rest.startsWith(".")) rest = rest.slice(1);
    if (index !== undefined) {
      while (place.items.length <= Number(index)) place.items.push(newPlace());
      place = place.items[Number(index)]!;
    } else {
      const key = quoted === undefined ? name! : (JSON.parse(quoted) as string);
      const next = place.members.get(key) ?? newPlace();
      place.members.set(key, next);
      place = next;
    }
  }
  return place;
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
