import { type Column, ID_COLUMN } from "../io/table.ts";
import type { Attempt, Delivery, DeliveryWithAttempts, SubscriptionAttempt } from "../../domain/delivery.ts";
import { ATTEMPT, DELIVERY, DELIVERY_WITH_ATTEMPTS } from "../../model/delivery.ts";
import { linesOf, listOf, type RecordView, type ShownMembers } from "./view.ts";

const SHOWN: ShownMembers<Delivery & Pick<DeliveryWithAttempts, "key">> = {
  subscription: (delivery) => `${delivery.subscription_id} ${subscriptionOf(delivery)}`,
  status: { color: colorOf },
};

const LINES = ["rowid", "event_id", "action", "subscription", "key"] as const;

export const DELIVERIES = {
  noun: "delivery",
  plural: "deliveries",
  record: linesOf(DELIVERY_WITH_ATTEMPTS, SHOWN, LINES),
  list: listOf(DELIVERY, SHOWN, {
    rowid: ID_COLUMN,
    event_id: { align: "right", dropOrder: 3 },
    action: { shrinkTo: 10, dropOrder: 4, keepWhole: true },
    subscription: { value: subscriptionOf, shrinkTo: 16 },
    status: {},
    attempt: { align: "right", dropOrder: 1 },
    next_attempt_at: {
      title: "NEXT OR END",
      value: (delivery) => delivery.next_attempt_at ?? delivery.finished_at,
      time: true,
      dropOrder: 2,
    },
    last_error: { shrinkTo: 10 },
  }),
  none: () => "No deliveries yet.",
} satisfies RecordView<Delivery>;

export const ATTEMPT_LIST = listOf<Attempt>(
  ATTEMPT,
  {
    outcome: {
      color: ({ outcome }) => ({ delivered: "green", failed: "red", returned: "yellow" } as const)[outcome],
    },
  },
  {
    attempt: { align: "right" },
    started_at: { title: "STARTED" },
    duration_ms: { title: "MS", align: "right" },
    dns_ms: { title: "DNS", align: "right", dropOrder: 1 },
    connect_ms: { title: "CONNECT", align: "right", dropOrder: 2 },
    first_byte_ms: { title: "FIRST BYTE", align: "right", dropOrder: 3 },
    outcome: {},
    status_code: { title: "ANSWER", value: answerOf },
    response: { title: "BODY", shrinkTo: 6 },
  },
);

export const SUBSCRIPTION_ATTEMPT_LIST: readonly Column<SubscriptionAttempt>[] = [
  { title: "DELIVERY", value: ({ delivery_id }) => delivery_id, align: "right" },
  { title: "EVENT", value: ({ event_id }) => event_id, align: "right", dropOrder: 4 },
  ...ATTEMPT_LIST,
];

function answerOf({
  status_code: status,
  error_code: error,
  tls_reason: tls,
}: Attempt): string | number | null {
  return status ?? (error === null || !tls ? error : `${error}: ${tls}`);
}

function colorOf({ status }: Delivery): "green" | "yellow" | "red" | "dim" {
  if (status === "delivered") return "green";
  if (status === "failed") return "red";
  return status === "filtered" || status === "cancelled" ? "dim" : "yellow";
}

/** The subscription that a record is of, by its application and name. */
export function subscriptionOf(record: Pick<Delivery, "application" | "subscription">): string {
  return `${record.application}/${record.subscription}`;
}
