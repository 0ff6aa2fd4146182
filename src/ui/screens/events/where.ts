import { SEARCH_LIMITS } from "../../../domain/event.ts";
import { pointerSteps } from "../../../json/pointer.ts";

/** What a search for payloads is asked for, or what is wrong with it. */
type Where = { readonly schema: string } | { readonly wrong: string };

/** Names of members and places in lists. */
type Steps = readonly (string | number)[];

/** What a payload must have somewhere. */
interface Wanted {
  readonly steps: Steps;
  /** The value as JSON. */
  readonly value: string;
}

const STEP = /^(?:([^.[\]"]+)|\[(\d{1,3})\]|\[("(?:[^"\\]|\\.)*")\])/s;
const MOST_STEPS = 64;
const FORMS =
  "where takes members such as country=FR, customer.id=7 or /sender/login=ada, each place once, or a JSON Schema.";
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
  const members = text.trim().split(NEXT_MEMBER);
  const wanted = members.flatMap((typed): readonly Wanted[] => {
    const member = typed.trim();
    const at = member.indexOf("=");
    const steps = at < 1 ? undefined : stepsOf(member.slice(0, at));
    return steps === undefined ? [] : [{ steps, value: valueOf(member.slice(at + 1)) }];
  });
  const schema = wanted.length < members.length ? undefined : schemaOf(wanted);
  return schema === undefined ? { wrong: FORMS } : { schema };
}

/** Of `items[0].sku`, `["odd name"].x` or a JSON Pointer; `undefined` for what is no such path. */
function stepsOf(path: string): Steps | undefined {
  const steps: (string | number)[] = [];
  if (path.startsWith("/")) {
    // A number in the pointer is a place in a list.
    steps.push(
      ...pointerSteps(path).map((step) => (/^(?:0|[1-9]\d{0,2})$/.test(step) ? Number(step) : step)),
    );
  }
  for (let rest = path.startsWith("/") ? "" : path; rest !== "";) {
    const [whole, name, index, quoted] = STEP.exec(rest) ?? [];
    const step = index === undefined ? (name ?? textIn(quoted)) : Number(index);
    if (whole === undefined || step === undefined) return undefined;
    steps.push(step);
    rest = rest.slice(whole.length).replace(/^\./, "");
  }
  return steps.length > MOST_STEPS ? undefined : steps;
}

/** The text of a name in quotes, if it is JSON. */
function textIn(quoted = ""): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
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

/** The schema of a place, with what is wanted in it; `undefined` where that cannot be true together. */
function schemaOf(wanted: readonly Wanted[]): string | undefined {
  if (wanted.some(({ steps }) => steps.length === 0)) {
    return wanted.length === 1 ? `{"const":${wanted[0]!.value}}` : undefined;
  }
  const inner = Map.groupBy(wanted, ({ steps: [step] }) => step);
  const schemas = [...inner].map(([step, all]) => {
    const within = all.map(({ steps, value }) => ({ steps: steps.slice(1), value }));
    return [step, schemaOf(within)] as const;
  });
  const isList = schemas.every(([step]) => typeof step === "number");
  const isObject = schemas.every(([step]) => typeof step === "string");
  if (isList === isObject || schemas.some(([, schema]) => schema === undefined)) return undefined;
  if (isObject) {
    const named = schemas.map(([name, schema]) => `${JSON.stringify(name)}:${schema}`);
    return `{"type":"object","properties":{${named.join()}},"required":${JSON.stringify([...inner.keys()])}}`;
  }
  const length = Math.max(...schemas.map(([place]) => Number(place))) + 1;
  const items = Array.from({ length }, (_, place) => new Map(schemas).get(place) ?? "{}");
  return `{"type":"array","items":[${items.join()}],"minItems":${length}}`;
}
