import { type Column, ID_COLUMN } from "../io/table.ts";
import { nextCommand } from "../target/next-command.ts";
import { type SubscriptionState, subscriptionState } from "../../domain/words/attention.ts";
import { attemptErrorText } from "../../domain/words/attempts.ts";
import type { HandlerTest } from "../../domain/webhook.ts";
import type { Attention } from "../../domain/operations.ts";
import type { Subscription, SubscriptionWithSecret } from "../../domain/subscription.ts";
import { HEADER_LINES } from "../../model/value-kinds.ts";
import { SUBSCRIPTION } from "../../model/subscription.ts";
import { subscriptionOf } from "./deliveries.ts";
import { linesOf, listOf, type RecordView, type ShownMembers } from "./view.ts";

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

const SHOWN: ShownMembers<Subscription> = {
  handler: ({ handler }) => handler ?? "none: consumers claim its deliveries",
  active: {
    show: stateOf,
    color: (subscription) => (stateOf(subscription) === "active" ? "green" : "yellow"),
  },
  // The secret, unless asked otherwise; then there is nothing to say.
  bearer: ({ bearer }) => BEARERS[bearer],
  filter: ({ filter }) => (filter === null ? undefined : JSON.stringify(filter)),
  ordered: orderOf,
  previous_secret_until: ({ previous_secret_until: until }) =>
    until === null ? undefined : `valid until ${until}`,
  blocked_by: blockOf,
};

const LINES = linesOf(SUBSCRIPTION, SHOWN);

export const SUBSCRIPTIONS = {
  noun: "subscription",
  plural: "subscriptions",
  record: LINES,
  list: listOf(SUBSCRIPTION, SHOWN, {
    rowid: ID_COLUMN,
    application: { shrinkTo: 8, keepWhole: true },
    subscription: { shrinkTo: 8, keepWhole: true },
    action: { shrinkTo: 12, keepWhole: true },
    active: {},
    max_retries: { align: "right", dropOrder: 1 },
    handler: { value: ({ handler }) => handler ?? "(pull)", shrinkTo: 20 },
  }),
  none: () =>
    `No subscriptions yet. Create one: ${nextCommand("subscriptions create --application APP --subscription NAME --action ACTION --handler URL")}`,
} satisfies RecordView<Subscription>;

/** What needs a person. A sentence is not cut, as its end says why: where it does not fit, each is a block. */
export const ATTENTION_LIST: readonly Column<Attention>[] = [
  { title: "REASON", value: ({ reason }) => reason, color: ({ reason }) => REASON_COLORS[reason] },
  { title: "ID", value: ({ subscription_id: id }) => id, align: "right" },
  { title: "FOUND", value: ({ found }) => found },
];

const SECRET_LINE: Column<SubscriptionWithSecret> = {
  title: "Secret",
  value: ({ secret }) => secret,
};

export const NEW_SUBSCRIPTION_RECORD = [...LINES, SECRET_LINE];

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
  { title: "Request", value: requestOf, lines: true },
  { title: "Its body", value: ({ request }) => request.body, block: true },
  {
    title: "Came back",
    value: ({ response }) =>
      response === null ? undefined : HEADER_LINES.write(response.headers) || undefined,
    lines: true,
  },
  { title: "Body", value: ({ response }) => response?.body ?? undefined, block: true },
];

function requestOf({ request: { method, url, headers } }: HandlerTest): string {
  return `${method} ${url}\n${HEADER_LINES.write(headers)}`;
}

function answerOf({ response, error_code: code, tls_reason: tls, refusal }: HandlerTest): string {
  if (response !== null) return String(response.status_code);
  if (code === null) return "none";
  const words = refusal ?? attemptErrorText(code, tls);
  return words === code ? code : `${code}: ${words}`;
}

function timesOf(test: HandlerTest): string {
  const parts = Object.entries({
    "look-up": test.dns_ms,
    connection: test.connect_ms,
    "first byte": test.first_byte_ms,
  }).flatMap(([name, ms]) => (ms === null ? [] : [`${name} ${ms} ms`]));
  return `${test.duration_ms} ms${parts.length === 0 ? "" : ` (${parts.join(", ")})`}`;
}

function stateOf(subscription: Subscription): SubscriptionState {
  return subscriptionState(subscription, Date.now());
}

function blockOf({ active, blocked_by: delivery }: Subscription): string | undefined {
  if (delivery === null) return undefined;
  const state = active ? "tried on" : "held until it is active again";
  return `delivery ${delivery}, which is ${state}; to go past it: ${nextCommand(`deliveries skip ${delivery}`)}`;
}

function orderOf({ ordered, on_exhausted: exhausted }: Subscription): string | undefined {
  if (ordered === false) return undefined;
  const by = ordered === true ? "yes" : `by ${ordered.key}`;
  return exhausted === "skip" ? `${by}, past those that fail for good` : `${by}, none is passed over`;
}
