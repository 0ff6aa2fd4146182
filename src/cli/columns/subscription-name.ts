import type { Delivery } from "../../domain/delivery.ts";

/** The subscription that a record is of, by its application and name. */
export function subscriptionOf(record: Pick<Delivery, "application" | "subscription">): string {
  return `${record.application}/${record.subscription}`;
}
