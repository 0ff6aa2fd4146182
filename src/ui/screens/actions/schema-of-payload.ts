type Json = Readonly<Record<string, unknown>>;

/** Levels that are looked into: as deep as a schema may say. */
const DEEPEST = 20;

/** A schema that a payload conforms to, to begin with: its members, all of them required, and their types. */
export function schemaOfPayload(value: unknown, depth = 0): Json {
  if (depth > DEEPEST) return {};
  if (value === null) return { type: "null" };
  if (Array.isArray(value)) {
    const kinds = new Map(
      value.map((item) => {
        const schema = schemaOfPayload(item, depth + 1);
        return [JSON.stringify(schema), schema];
      }),
    );
    const items = [...kinds.values()];
    if (items.length === 0) return { type: "array" };
    return { type: "array", items: items.length === 1 ? items[0] : { anyOf: items } };
  }
  if (typeof value === "object") {
    const members = Object.entries(value).map(
      ([name, inner]) => [name, schemaOfPayload(inner, depth + 1)] as const,
    );
    const names = members.map(([name]) => name);
    return {
      type: "object",
      ...(names.length === 0 ? {} : { required: names }),
      properties: Object.fromEntries(members),
    };
  }
  if (typeof value === "number") return { type: Number.isInteger(value) ? "integer" : "number" };
  return { type: typeof value };
}
