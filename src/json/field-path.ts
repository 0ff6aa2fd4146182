export type FieldPath = readonly (string | number)[];

const IDENTIFIER = /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u;

/** A step of a place as `fieldName` writes it. */
const STEP = /\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|(?:^|(?<=.)\.)([^.[\]"]+)/gs;

/** Characters up to which a name in a place is written whole, and a place; of longer ones the beginning and the end. */
const MAX_NAME_LENGTH = 128;
const MAX_FIELD_LENGTH = 2_048;

/**
 * A place as people write it: `address.zip`, `items[2].sku`, `["odd name"].x`; `""` is the root. Where a name or the whole
 * is too long, an ellipsis replaces its middle: both come from outside, and are repeated in messages.
 */
export function fieldName(path: FieldPath, root = ""): string {
  const steps = path.map((step, index) => stepName(step, index === 0 && root === ""));
  return shortName(root + steps.join(""), MAX_FIELD_LENGTH);
}

function stepName(step: string | number, isFirst: boolean): string {
  if (typeof step === "number") return `[${step}]`;
  const name = shortName(step, MAX_NAME_LENGTH);
  if (name !== step || !IDENTIFIER.test(name)) return `[${JSON.stringify(name)}]`;
  return isFirst ? name : `.${name}`;
}

function shortName(name: string, maxLength: number): string {
  if (name.length <= maxLength) return name;
  const half = maxLength / 2;
  return `${name.slice(0, half).toWellFormed()}…${name.slice(1 - half).toWellFormed()}`;
}

/** The steps of what `fieldName` has written; none for another text. */
export function pathNamed(field: string): FieldPath {
  const steps = [...field.matchAll(STEP)];
  if (steps.map(([whole]) => whole).join("") !== field) return [];
  try {
    return steps.map(([, index, quoted, name = ""]) => {
      if (index !== undefined) return Number(index);
      return quoted === undefined ? name : (JSON.parse(quoted) as string);
    });
  } catch {
    // Something is escaped that JSON does not know.
    return [];
  }
}

/** The steps of a JSON pointer, taken in `document`: in a list a step is a number. */
export function pathOf(pointer: string, document: unknown): FieldPath {
  const path: (string | number)[] = [];
  let value = document;
  for (const step of pointerSteps(pointer)) {
    path.push(Array.isArray(value) ? Number(step) : step);
    value = childOf(value, step);
  }
  return path;
}

/** The member or item of that name. Inherited names do not count. */
export function childOf(value: unknown, step: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
  return (value as Record<string, unknown>)[step];
}

// JSON Pointers, RFC 6901.

export function pointerSteps(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** A pointer one step longer. */
export function pointerTo(pointer: string, step: string | number): string {
  return `${pointer}/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
