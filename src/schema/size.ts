import { isObject } from "./keywords.ts";
import { SCHEMA_LIMITS } from "./limits.ts";
import { refuseSchema } from "./refusal.ts";

/** Holds a document to its limits of depth and size, before anything looks at it recursively. */
export function checkSize(schemata: unknown, maxBytes: number): void {
  if (!isObject(schemata)) throw refuseSchema(schemata, "", "must be a JSON Schema object", schemata);
  let level: object[] = [schemata];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > SCHEMA_LIMITS.depth) {
      throw refuseSchema(undefined, "", `must not be nested deeper than ${SCHEMA_LIMITS.depth} levels`);
    }
    const next: object[] = [];
    for (const container of level) {
      for (const value of Object.values(container) as unknown[]) {
        if (typeof value === "object" && value !== null) next.push(value);
      }
    }
    level = next;
  }
  const bytes = Buffer.byteLength(JSON.stringify(schemata));
  if (bytes > maxBytes) {
    const message = `must have at most ${maxBytes.toLocaleString("en")} bytes as JSON, not ${bytes.toLocaleString("en")}`;
    throw refuseSchema(undefined, "", message);
  }
}
