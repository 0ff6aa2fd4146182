import { type Column, ID_COLUMN } from "../cli/io/table.ts";
import type { Attempt, Delivery, DeliveryStatus } from "../domain/delivery.ts";

export const DELIVERY_LIST: readonly Column<Delivery>[] = [
  { ...ID_COLUMN, value: (delivery) => delivery.rowid },
  { title: "EVENT", value: (delivery) => delivery.event_id, align: "right", dropOrder: 3 },
  { title: "ACTION", value: (delivery) => delivery.action, shrinkTo: 10, dropOrder: 4, keepWhole: true },
  { title: "SUBSCRIPTION", value: subscriptionOf, shrinkTo: 12, dropOrder: 1 },
  { title: "STATUS", value: (delivery) => delivery.status, color: (delivery) => toneOf(delivery.status) },
  { title: "ATTEMPTS", value: (delivery) => delivery.attempt, align: "right" },
  {
    title: "NEXT OR END",
    value: (delivery) => delivery.next_attempt_at ?? delivery.finished_at,
    time: "recent",
  },
  { title: "LAST ERROR", value: (delivery) => delivery.last_error, shrinkTo: 8, dropOrder: 2 },
];

export const DELIVERY_RECORD: readonly Column<Delivery>[] = [
  { title: "Delivery", value: (delivery) => delivery.rowid },
  { title: "Event", value: (delivery) => delivery.event_id },
  { title: "Action", value: (delivery) => delivery.action },
  { title: "Subscription", value: (delivery) => `${delivery.subscription_id} ${subscriptionOf(delivery)}` },
  { title: "Status", value: (delivery) => delivery.status, color: (delivery) => toneOf(delivery.status) },
  { title: "Attempts", value: (delivery) => delivery.attempt },
  { title: "Next attempt", value: (delivery) => delivery.next_attempt_at ?? undefined },
  { title: "Last error", value: (delivery) => delivery.last_error ?? undefined },
  { title: "Created", value: (delivery) => delivery.timestamped },
  { title: "Finished", value: (delivery) => delivery.finished_at ?? undefined },
];

export const ATTEMPT_LIST: readonly Column<Attempt>[] = [
  { title: "ATTEMPT", value: (attempt) => attempt.attempt, align: "right" },
  { title: "STARTED", value: (attempt) => attempt.started_at },
  { title: "MS", value: (attempt) => attempt.duration_ms, align: "right" },
  { title: "DNS", value: (attempt) => attempt.dns_ms, align: "right", dropOrder: 1 },
  { title: "CONNECT", value: (attempt) => attempt.connect_ms, align: "right", dropOrder: 2 },
  { title: "FIRST BYTE", value: (attempt) => attempt.first_byte_ms, align: "right", dropOrder: 3 },
  {
    title: "OUTCOME",
    value: (attempt) => attempt.outcome,
    color: (attempt) => ({ delivered: "green", failed: "red", returned: "yellow" } as const)[attempt.outcome],
  },
  { title: "ANSWER", value: (attempt) => attempt.status_code ?? attempt.error_code },
  { title: "BODY", value: (attempt) => attempt.response, shrinkTo: 6 },
];

function toneOf(status: DeliveryStatus): "green" | "yellow" | "red" | "dim" {
  if (status === "delivered") return "green";
  if (status === "failed") return "red";
  return status === "filtered" || status === "cancelled" ? "dim" : "yellow";
}

/** The subscription that a record is of, by its application and name. */
export function subscriptionOf(record: Pick<Delivery, "application" | "subscription">): string {
  return `${record.application}/${record.subscription}`;
}
