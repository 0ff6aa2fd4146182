import type { JsonSchema } from "../route.ts";
import { ACTION_RECORDS } from "./actions.ts";
import { DELIVERY_RECORDS } from "./deliveries.ts";
import { DOCTOR_RECORDS } from "./doctor.ts";
import { EVENT_RECORDS } from "./events.ts";
import { HEALTH_RECORDS } from "./health.ts";
import { failure, record } from "./members.ts";
import { REPLAY_RECORDS } from "./replays.ts";
import { SUBSCRIPTION_RECORDS } from "./subscriptions.ts";
import { TOKEN_RECORDS } from "./tokens.ts";

/** The records as they are answered, by the names that `ref` takes. Tests hold real answers to them. */
export const RECORDS: Readonly<Record<string, JsonSchema>> = {
  ...ACTION_RECORDS,
  ...EVENT_RECORDS,
  ...SUBSCRIPTION_RECORDS,
  ...DELIVERY_RECORDS,
  ...REPLAY_RECORDS,
  ...TOKEN_RECORDS,
  ...HEALTH_RECORDS,
  ...DOCTOR_RECORDS,
  Error: record(failure),
};
