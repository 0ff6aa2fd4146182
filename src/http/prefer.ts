import type { HeaderPair } from "./reply.ts";
import type { JsonSchema } from "./route.ts";

const MINIMAL = /^return\s*=\s*(minimal|"minimal")\s*(;|$)/i;

/** Whether a `Prefer` header asks for an answer without what its caller has anyway (RFC 7240); others are ignored as it says. */
export function prefersMinimal(header: string | undefined): boolean {
  return header !== undefined && header.split(",").some((preference) => MINIMAL.test(preference.trim()));
}

export const MINIMAL_APPLIED: HeaderPair = ["preference-applied", "return=minimal"];

/** For the OpenAPI document: of the request … */
export const PREFER_HEADERS: Readonly<Record<string, JsonSchema>> = {
  Prefer: {
    type: "string",
    description: "`return=minimal` leaves the events out of the answer: `data` is then empty (RFC 7240).",
    examples: ["return=minimal"],
  },
};

/** … and of the answer. */
export const APPLIED_HEADERS: Readonly<Record<string, JsonSchema>> = {
  "Preference-Applied": {
    type: "string",
    enum: ["return=minimal"],
    description: "Only where it was asked for.",
  },
};
