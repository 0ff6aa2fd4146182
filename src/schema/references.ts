import { isObject, subschemasOf } from "./keywords.ts";

/** Keywords whose schemas are tried rather than demanded. */
const CHOICES = new Set([
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "contains",
  "dependencies",
  "propertyNames",
]);

/** What the `$ref`s of a document say about where its schemas are used. */
export interface References {
  readonly all: readonly string[];
  /** Every one is a pointer from the root or the root itself, whatever the document's address is. */
  readonly withinRoot: boolean;
  /** Every one is a pointer, so that no `$id` has a part in what it means. */
  readonly onlyPointers: boolean;
  /** Whether a choice may use the schema at a pointer by way of a `$ref`. Only ever wrong in saying that it may. */
  mayBeChoice(pointer: string): boolean;
}

export function referencesIn(schemata: unknown): References {
  const all: string[] = [];
  let inChoice = false;
  const visit = (schema: unknown, choice: boolean): void => {
    if (!isObject(schema)) return;
    const reference = schema["$ref"];
    if (typeof reference === "string") {
      all.push(reference);
      inChoice ||= choice;
    }
    for (const { keyword, schema: child } of subschemasOf(schema))
      visit(child, choice || CHOICES.has(keyword));
  };
  visit(schemata, false);
  return {
    all,
    withinRoot: all.every((reference) => reference.startsWith("#")),
    onlyPointers: all.every((reference) => reference === "#" || reference.startsWith("#/")),
    mayBeChoice(pointer) {
      if (!inChoice) return false;
      // One reference leads to the next, so with any in a choice each may have been come by from it.
      return all.some((reference) => {
        const target = reference.slice(1);
        const plain = target === "" || /^\/[\w/-]*$/.test(target);
        return !reference.startsWith("#") || !plain || pointer === target || pointer.startsWith(`${target}/`);
      });
    },
  };
}
