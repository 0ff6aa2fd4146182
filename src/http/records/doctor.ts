import type { JsonSchema } from "../route.ts";
import { record, text, timestamp } from "./members.ts";

/** The answer of the doctor. */
export const DOCTOR_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Finding: record({
    check: { ...text, description: "What was looked at." },
    status: {
      enum: ["ok", "warning", "problem"],
      description: "A `warning` will become a problem, or is one that may be meant.",
    },
    found: text,
    remedy: { type: ["string", "null"], description: "What to do about it; `null` when all is well." },
  }),
};

export const FINDINGS_META: JsonSchema = record({ time: timestamp });
