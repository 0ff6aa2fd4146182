import { RawJson } from "./raw-json.ts";

/**
 * Writes a JSON document, with every `RawJson` inside it as its exact bytes.
 *
 * Members whose value is `undefined` are left out, as `JSON.stringify` does. `Date`s and other objects with a `toJSON`
 * are not expected: values that reach here are JSON-shaped.
 *
 * @param indent spaces a level; raw values are never re-indented, as that would change their bytes
 */
export function encodeJson(value: unknown, indent = 0): string {
  return write(value, indent, "\n");
}

function write(value: unknown, indent: number, newline: string): string {
  if (value instanceof RawJson) return value.text();
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (!holdsRaw(value)) {
    const text = JSON.stringify(value, null, indent);
    return indent === 0 || newline === "\n" ? text : text.replaceAll("\n", newline);
  }
  const inner = indent === 0 ? "" : newline + " ".repeat(indent);
  const outer = indent === 0 ? "" : newline;
  if (Array.isArray(value)) {
    return `[${inner}${value.map((item) => write(item, indent, inner)).join(`,${inner}`)}${outer}]`;
  }
  const colon = indent === 0 ? ":" : ": ";
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([name, member]) => JSON.stringify(name) + colon + write(member, indent, inner));
  return `{${inner}${members.join(`,${inner}`)}${outer}}`;
}

function holdsRaw(value: object): boolean {
  if (value instanceof RawJson) return true;
  for (const member of Object.values(value)) {
    if (typeof member === "object" && member !== null && holdsRaw(member)) return true;
  }
  return false;
}
