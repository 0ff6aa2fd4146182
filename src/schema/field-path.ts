export type FieldPath = readonly (string | number)[];

const IDENTIFIER = /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u;

/** A step of a place as `fieldName` writes it. */
const STEP = /\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g;

/** A place as people write it: `address.zip`, `items[2].sku`, `["odd name"].x`; `""` is the root. */
export function fieldName(path: FieldPath, root = ""): string {
  let name = root;
  for (const step of path) {
    if (typeof step === "number") name += `[${step}]`;
    else if (!IDENTIFIER.test(step)) name += `[${JSON.stringify(step)}]`;
    else name += name === "" ? step : `.${step}`;
  }
  return name;
}

/** The steps of what `fieldName` has written. */
export function pathNamed(field: string): FieldPath {
  return Array.from(field.matchAll(STEP), ([, index, quoted, name = ""]) => {
    if (index !== undefined) return Number(index);
    return quoted === undefined ? name : (JSON.parse(quoted) as string);
  });
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

/** The value at a path; `undefined` when there is none. */
export function valueAt(path: FieldPath, document: unknown): unknown {
  return path.reduce<unknown>((value, step) => childOf(value, String(step)), document);
}

/** The member or item of that name. Inherited names do not count. */
export function childOf(value: unknown, step: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
  return (value as Record<string, unknown>)[step];
}

export function pointerSteps(pointer: string): string[] {
  if (pointer === "") return [];
  return pointer
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** A pointer one step longer. */
export function pointerTo(pointer: string, step: string | number): string {
  return `${pointer}/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
