import type { JsonObject } from "./keywords.ts";

/**
 * What to write for a `nullable`, which checks nothing: `"type": ["string", "null"]`. `undefined` where it asks for nothing
 * or the type beside it does not rule null out.
 */
export function insteadOfNullable({ nullable, type, enum: values }: JsonObject): string | undefined {
  const types = [type].flat();
  if (nullable !== true || type === undefined || types.includes("null")) return undefined;
  const written = `"type": [${[...types, "null"].map((name) => JSON.stringify(name)).join(", ")}]`;
  return Array.isArray(values) && !values.includes(null) ? `${written}, with null in enum,` : written;
}
