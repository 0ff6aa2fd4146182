import type { JsonObject } from "./keywords.ts";

const PROTO = "__proto__";

/** Puts schemas back under their keywords. */
export class Holder {
  readonly #schema: JsonObject;

  constructor(schema: JsonObject) {
    this.#schema = schema;
  }

  put(steps: readonly (string | number)[], value: unknown): void {
    const [keyword, child] = steps;
    const name = String(keyword);
    if (child === undefined) this.#schema[name] = value;
    else if (typeof child === "number") ((this.#schema[name] ??= []) as unknown[])[child] = value;
    else {
      const map = (this.#schema[name] ??= {}) as JsonObject;
      Object.defineProperty(map, child, { value, enumerable: true, configurable: true, writable: true });
    }
  }

  /** Ajv leaves out `contains` for an empty list where `items` is a list of schemas, unless it stands by itself. */
  rehouseContains(): void {
    const { contains } = this.#schema;
    if (contains === undefined || !Array.isArray(this.#schema["items"])) return;
    ((this.#schema["allOf"] ??= []) as unknown[]).push({ contains });
    delete this.#schema["contains"];
  }

  /** Ajv passes over a property named `__proto__`; the same said with other keywords it understands. */
  rehouseProto(): void {
    const properties = this.#schema["properties"] as JsonObject | undefined;
    if (properties !== undefined && Object.hasOwn(properties, PROTO)) {
      const patterns = (this.#schema["patternProperties"] ??= {}) as JsonObject;
      patterns[`^${PROTO}$`] = both(patterns[`^${PROTO}$`], properties[PROTO]);
      delete properties[PROTO];
    }
    const dependencies = this.#schema["dependencies"] as JsonObject | undefined;
    if (dependencies !== undefined && Object.hasOwn(dependencies, PROTO)) {
      const needed = dependencies[PROTO];
      const whenPresent = Array.isArray(needed) ? { required: needed } : needed;
      const all = (this.#schema["allOf"] ??= []) as unknown[];
      all.push({ anyOf: [{ not: { type: "object", required: [PROTO] } }, whenPresent] });
      delete dependencies[PROTO];
    }
  }
}

function both(one: unknown, other: unknown): unknown {
  return one === undefined ? other : { allOf: [one, other] };
}
