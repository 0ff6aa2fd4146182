import { DELIVERY_LIMITS, DELIVERY_STATUSES } from "../delivery.ts";
import type { QuerySchema } from "../query.ts";
import { byAction, from, querySchema, rowid, to } from "./members.ts";

export const DELIVERY_QUERY: QuerySchema = querySchema("DeliveryQuery", {
  event: { ...rowid, description: "Only of the event with this rowid." },
  subscription: { ...rowid, description: "Only of the subscription with this rowid." },
  action: byAction,
  status: { type: "string", enum: DELIVERY_STATUSES, description: "Only in this state." },
  from: { ...from, description: "Created then or later." },
  to: { ...to, description: "Created before then." },
  limit: {
    type: "integer",
    minimum: 1,
    maximum: DELIVERY_LIMITS.listMax,
    default: DELIVERY_LIMITS.listDefault,
    description: "Deliveries in one answer.",
  },
  after: { ...rowid, description: "Walks on to deliveries older than this rowid." },
});
