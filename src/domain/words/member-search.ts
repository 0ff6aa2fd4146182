import { pointerSteps } from "../../json/pointer.ts";

/** Names of members and places in lists. */
type MemberPath = readonly (string | number)[];

/** What a payload must have somewhere. */
interface WantedMember {
  readonly steps: MemberPath;
  /** The value as JSON. */
  readonly value: string;
}

const STEP = /^(?:([^.[\]"]+)|\[(\d{1,3})\]|\[("(?:[^"\\]|\\.)*")\])/s;
const MOST_STEPS = 64;

/** What a search by members takes. */
export const MEMBER_SEARCH_FORM =
  "takes members such as country=FR, customer.id=7 or /sender/login=ada, each place once";

/**
 * The JSON Schema, as JSON, of the payloads that have all these members; `undefined` where one of them is none, or two are about
 * the same place.
 * @param typed each as `country=FR`, `customer.id=7`, `items[0].sku="A 1"`, `["odd name"].x=true` or `/customer/id=7`; a value is
 *   JSON, or else a text
 */
export function memberSearch(typed: readonly string[]): string | undefined {
  const wanted = typed.flatMap((member): readonly WantedMember[] => {
    const at = member.indexOf("=");
    const steps = at < 1 ? undefined : stepsOf(member.slice(0, at));
    return steps === undefined ? [] : [{ steps, value: valueOf(member.slice(at + 1)) }];
  });
  return wanted.length < typed.length ? undefined : schemaOf(wanted);
}

/** The steps of `items[0].sku`, `["odd name"].x` or a JSON Pointer; `undefined` for what is no such path. */
function stepsOf(path: string): MemberPath | undefined {
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
function schemaOf(wanted: readonly WantedMember[]): string | undefined {
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
