import type { JsonSchema } from "../route.ts";
import { failure, record, ref, text } from "./members.ts";

/** The answers of `/health`. */
export const HEALTH_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Health: record(
    {
      status: { enum: ["ok", "unavailable"] },
      version: text,
      reason: { ...text, description: "Why it is unavailable." },
      store: { enum: ["ok", "unavailable"] },
      engine: { enum: ["running", "failing", "stopped"] },
      instance: { ...text, description: "Made anew at each start." },
    },
    ["reason"],
  ),
};

/** `/health` while something is wrong: the record, and the members that every failure has. */
export const UNHEALTHY: JsonSchema = record({ data: ref("Health"), ...failure });
