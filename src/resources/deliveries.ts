import { type Column, id } from "../cli/io/table.ts";
import type { Attempt, Delivery, DeliveryStatus } from "../domain/delivery.ts";

export const DELIVERY_LIST: readonly Column<Delivery>[] = [
  { ...id, of: (delivery) => delivery.rowid },
  { title: "EVENT", of: (delivery) => delivery.event_id, align: "right", spare: 3 },
  { title: "ACTION", of: (delivery) => delivery.action, shrinkTo: 10, spare: 4, whole: true },
  { title: "SUBSCRIPTION", of: subscriptionOf, shrinkTo: 12, spare: 1 },
  { title: "STATUS", of: (delivery) => delivery.status, tone: (delivery) => toneOf(delivery.status) },
  { title: "ATTEMPTS", of: (delivery) => delivery.attempt, align: "right" },
  {
    title: "NEXT OR END",
    of: (delivery) => delivery.next_attempt_at ?? delivery.finished_at,
    time: "recent",
  },
  { title: "LAST ERROR", of: (delivery) => delivery.last_error, shrinkTo: 8, spare: 2 },
];

export const DELIVERY_RECORD: readonly Column<Delivery>[] = [
  { title: "Delivery", of: (delivery) => delivery.rowid },
  { title: "Event", of: (delivery) => delivery.event_id },
  { title: "Action", of: (delivery) => delivery.action },
  { title: "Subscription", of: (delivery) => `${delivery.subscription_id} ${subscriptionOf(delivery)}` },
  { title: "Status", of: (delivery) => delivery.status, tone: (delivery) => toneOf(delivery.status) },
  { title: "Attempts", of: (delivery) => delivery.attempt },
  { title: "Next attempt", of: (delivery) => delivery.next_attempt_at ?? undefined },
  { title: "Last error", of: (delivery) => delivery.last_error ?? undefined },
  { title: "Created", of: (delivery) => delivery.timestamped },
  { title: "Finished", of: (delivery) => delivery.finished_at ?? undefined },
];

export const ATTEMPT_LIST: readonly Column<Attempt>[] = [
  { title: "ATTEMPT", of: (attempt) => attempt.attempt, align: "right" },
  { title: "STARTED", of: (attempt) => attempt.started_at },
  { title: "MS", of: (attempt) => attempt.duration_ms, align: "right" },
  { title: "DNS", of: (attempt) => attempt.dns_ms, align: "right", spare: 1 },
  { title: "CONNECT", of: (attempt) => attempt.connect_ms, align: "right", spare: 2 },
  { title: "FIRST BYTE", of: (attempt) => attempt.first_byte_ms, align: "right", spare: 3 },
  {
    title: "OUTCOME",
    of: (attempt) => attempt.outcome,
    tone: (attempt) => ({ delivered: "green", failed: "red", returned: "yellow" } as const)[attempt.outcome],
  },
  { title: "ANSWER", of: (attempt) => attempt.status_code ?? attempt.error_code },
  { title: "BODY", of: (attempt) => attempt.response, shrinkTo: 6 },
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
