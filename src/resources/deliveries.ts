import { ID_COLUMN } from "../cli/io/table.ts";
import type { Attempt, Delivery, DeliveryWithAttempts, SubscriptionAttempt } from "../domain/delivery.ts";
import { type Fields, listColumns, recordColumns, type Resource } from "./resource.ts";

const FIELDS: Fields<Delivery & Pick<DeliveryWithAttempts, "key">> = {
  rowid: "Delivery",
  event_id: "Event",
  action: "Action",
  subscription: {
    title: "Subscription",
    show: (delivery) => `${delivery.subscription_id} ${subscriptionOf(delivery)}`,
  },
  key: "Key",
  status: { title: "Status", color: colorOf },
  attempt: "Attempts",
  next_attempt_at: "Next attempt",
  last_error: "Last error",
  timestamped: "Created",
  finished_at: "Finished",
};

export const DELIVERIES = {
  noun: "delivery",
  plural: "deliveries",
  record: recordColumns(FIELDS),
  list: listColumns(FIELDS, {
    rowid: ID_COLUMN,
    event_id: { align: "right", dropOrder: 3 },
    action: { shrinkTo: 10, dropOrder: 4, keepWhole: true },
    subscription: { value: subscriptionOf, shrinkTo: 16 },
    status: {},
    attempt: { align: "right", dropOrder: 1 },
    next_attempt_at: {
      title: "NEXT OR END",
      value: (delivery) => delivery.next_attempt_at ?? delivery.finished_at,
      time: "shortYear",
      dropOrder: 2,
    },
    last_error: { shrinkTo: 10 },
  }),
  none: () => "No deliveries yet.",
} satisfies Resource<Delivery>;

export const ATTEMPT_LIST = listColumns<Attempt>(
  {
    outcome: {
      title: "Outcome",
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

export const SUBSCRIPTION_ATTEMPT_LIST = [
  ...listColumns<SubscriptionAttempt>(
    { delivery_id: "Delivery", event_id: "Event" },
    { delivery_id: { align: "right" }, event_id: { align: "right", dropOrder: 4 } },
  ),
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
