import { type Column, ID_COLUMN } from "../cli/io/table.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { type SubscriptionState, subscriptionState } from "../domain/words/attention.ts";
import { attemptErrorText } from "../domain/words/attempts.ts";
import type { HandlerTest } from "../domain/webhook.ts";
import type { Attention } from "../domain/operations.ts";
import type { Subscription, SubscriptionWithSecret } from "../domain/subscription.ts";
import { SUBSCRIPTION_LIMITS } from "../model/subscription.ts";
import { subscriptionOf } from "./deliveries.ts";
import { type Fields, listColumns, recordColumns, type Resource } from "./resource.ts";

const REASON_COLORS = {
  deactivated: "red",
  blocked: "red",
  failing: "yellow",
  failed: "red",
  unclaimed: "yellow",
  slowed: "yellow",
  paused: "dim",
} as const;

const BEARERS = { secret: undefined, own: "a value of its own", none: "none" } as const;

const FIELDS: Fields<Subscription> = {
  rowid: "ID",
  application: "Application",
  subscription: "Subscription",
  action: "Action",
  handler: { title: "Handler", show: ({ handler }) => handler ?? "none: consumers claim its deliveries" },
  max_retries: "Retries",
  active: {
    title: "State",
    show: stateOf,
    color: (subscription) => (stateOf(subscription) === "active" ? "green" : "yellow"),
  },
  disabled_reason: "Reason",
  // The secret, unless asked otherwise; then there is nothing to say.
  bearer: { title: "Bearer", show: ({ bearer }) => BEARERS[bearer] },
  filter: {
    title: "Filter",
    show: ({ filter }) => (filter === null ? undefined : JSON.stringify(filter)),
  },
  rate_limit: {
    title: "Rate limit",
    show: ({ rate_limit: rate }) => (rate === null ? undefined : `${rate} a second`),
  },
  max_in_flight: {
    title: "In flight",
    show: ({ max_in_flight: max }) => (max === null ? undefined : `at most ${max}`),
  },
  timeout_ms: { title: "Timeout", show: ({ timeout_ms: ms }) => (ms === null ? undefined : `${ms} ms`) },
  headers: { title: "Headers", show: headersOf, lines: true },
  retry_schedule: {
    title: "Waits",
    show: ({ retry_schedule: waits }) => waits?.map((ms) => `${ms / 1_000} s`).join(", "),
  },
  ordered: { title: "Ordered", show: orderOf },
  previous_secret_until: {
    title: "Old secret",
    show: ({ previous_secret_until: until }) => (until === null ? undefined : `valid until ${until}`),
  },
  failing_since: "Failing since",
  blocked_by: { title: "Blocked by", show: blockOf },
  blocked_keys: { title: "Blocked keys", show: blockedKeys },
  slowed_until: "Slowed until",
  last_claim_at: "Last claim",
  expires_after_ms: {
    title: "Expires",
    show: ({ expires_after_ms: ms }) =>
      ms === null ? undefined : `${ms / 3_600_000} h after the last claim`,
  },
  timestamped: "Created",
};

export const SUBSCRIPTIONS = {
  noun: "subscription",
  plural: "subscriptions",
  record: recordColumns(FIELDS),
  list: listColumns(FIELDS, {
    rowid: ID_COLUMN,
    application: { shrinkTo: 8, keepWhole: true },
    subscription: { shrinkTo: 8, keepWhole: true },
    action: { shrinkTo: 12, keepWhole: true },
    active: {},
    max_retries: { align: "right", dropOrder: 1 },
    handler: { value: ({ handler }) => handler ?? "(pull)", shrinkTo: 20, cut: "middle" },
  }),
  none: () =>
    `No subscriptions yet. Create one: ${nextCommand("subscriptions create --application APP --subscription NAME --action ACTION --handler URL")}`,
} satisfies Resource<Subscription>;

/** What needs a person. */
export const ATTENTION_LIST = listColumns<Attention>(
  { reason: { title: "Reason", color: ({ reason }) => REASON_COLORS[reason] } },
  {
    reason: {},
    subscription_id: { title: "ID", align: "right" },
    since: { title: "SINCE", time: true, dropOrder: 1 },
    found: { title: "FOUND", shrinkTo: 30 },
  },
);

export const NEW_SUBSCRIPTION_RECORD = recordColumns<SubscriptionWithSecret>({
  ...FIELDS,
  secret: "Secret",
});

/** What a test has sent, and what came back. */
export const HANDLER_TEST_RECORD: readonly Column<HandlerTest>[] = [
  { title: "Subscription", value: (test) => `${test.subscription_id} ${subscriptionOf(test)}` },
  { title: "Action", value: ({ action }) => action },
  {
    title: "Outcome",
    // Nothing of an event was delivered.
    value: ({ outcome }) => (outcome === "delivered" ? "accepted" : outcome),
    color: ({ outcome }) => (outcome === "delivered" ? "green" : "red"),
  },
  { title: "Answer", value: answerOf },
  { title: "Time", value: timesOf },
  { title: "Sent", value: (test) => (wasSent(test) ? requestOf(test) : undefined), lines: true },
  { title: "Not sent", value: (test) => (wasSent(test) ? undefined : requestOf(test)), lines: true },
  {
    title: "Body sent",
    value: (test) => (wasSent(test) ? test.request.body : undefined),
    block: true,
  },
  {
    title: "Body not sent",
    value: (test) => (wasSent(test) ? undefined : test.request.body),
    block: true,
  },
  {
    title: "Came back",
    value: ({ response }) => (response === null ? undefined : headerLines(response.headers) || undefined),
    lines: true,
  },
  { title: "Body", value: ({ response }) => response?.body ?? undefined, block: true },
];

/** Whether there was a connection to send it on. */
function wasSent({ response, connect_ms: connected }: HandlerTest): boolean {
  return response !== null || connected !== null;
}

function requestOf({ request: { method, url, headers } }: HandlerTest): string {
  return `${method} ${url}\n${headerLines(headers)}`;
}

function answerOf({ response, error_code: code, tls_reason: tls, refusal }: HandlerTest): string {
  if (response !== null) return String(response.status_code);
  return code === null ? "none" : `${code}: ${refusal ?? attemptErrorText(code, tls)}`;
}

function timesOf(test: HandlerTest): string {
  const parts = Object.entries({
    "look-up": test.dns_ms,
    connection: test.connect_ms,
    "first byte": test.first_byte_ms,
  }).flatMap(([name, ms]) => (ms === null ? [] : [`${name} ${ms} ms`]));
  return `${test.duration_ms} ms${parts.length === 0 ? "" : ` (${parts.join(", ")})`}`;
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

function stateOf(subscription: Subscription): SubscriptionState {
  return subscriptionState(subscription, Date.now());
}

function blockOf({ active, blocked_by: delivery }: Subscription): string | undefined {
  if (delivery === null) return undefined;
  const state = active ? "tried on" : "held until it is active again";
  return `delivery ${delivery}, which is ${state}; to go past it: ${nextCommand(`deliveries skip ${delivery}`)}`;
}

function headersOf({ headers }: Subscription): string | undefined {
  return headers === null ? undefined : headerLines(headers);
}

function orderOf({ ordered, on_exhausted: exhausted }: Subscription): string | undefined {
  if (ordered === false) return undefined;
  const by = ordered === true ? "yes" : `by ${ordered.key}`;
  return exhausted === "skip" ? `${by}, past those that fail for good` : `${by}, none is passed over`;
}

function blockedKeys({ blocked_keys: keys }: Subscription): string | undefined {
  if (keys === null || keys === 0) return undefined;
  const { blockedKeys: most } = SUBSCRIPTION_LIMITS;
  return keys < most ? String(keys) : `${most} or more`;
}
