import { type Column, ID_COLUMN } from "../cli/io/table.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import type { Subscription, SubscriptionWithSecret } from "../domain/subscription.ts";

export const SUBSCRIPTION_LIST: readonly Column<Subscription>[] = [
  { ...ID_COLUMN, value: (subscription) => subscription.rowid },
  { title: "APPLICATION", value: (subscription) => subscription.application, shrinkTo: 8, keepWhole: true },
  { title: "SUBSCRIPTION", value: (subscription) => subscription.subscription, shrinkTo: 8, keepWhole: true },
  { title: "ACTION", value: (subscription) => subscription.action, shrinkTo: 12, keepWhole: true },
  { title: "STATE", value: stateOf, color: toneOfState },
  { title: "RETRIES", value: (subscription) => subscription.max_retries, align: "right", dropOrder: 1 },
  { title: "HANDLER", value: (subscription) => subscription.handler, shrinkTo: 20, cut: "middle" },
];

export const SUBSCRIPTION_RECORD: readonly Column<Subscription>[] = [
  { title: "ID", value: (subscription) => subscription.rowid },
  { title: "Application", value: (subscription) => subscription.application },
  { title: "Subscription", value: (subscription) => subscription.subscription },
  { title: "Action", value: (subscription) => subscription.action },
  { title: "Handler", value: (subscription) => subscription.handler },
  { title: "Retries", value: (subscription) => subscription.max_retries },
  { title: "State", value: stateOf, color: toneOfState },
  { title: "Reason", value: (subscription) => subscription.disabled_reason ?? undefined },
  { title: "Bearer", value: bearerOf },
  { title: "Filter", value: ({ filter }) => (filter === null ? undefined : JSON.stringify(filter)) },
  { title: "Rate limit", value: ({ rate_limit: rate }) => (rate === null ? undefined : `${rate} a second`) },
  { title: "In flight", value: ({ max_in_flight: most }) => (most === null ? undefined : `at most ${most}`) },
  {
    title: "Timeout",
    value: ({ timeout_ms: timeoutMs }) => (timeoutMs === null ? undefined : `${timeoutMs} ms`),
  },
  { title: "Headers", value: headersOf, lines: true },
  { title: "Waits", value: waitsOf },
  { title: "Ordered", value: orderOf },
  { title: "Old secret", value: oldSecretOf },
  { title: "Failing since", value: (subscription) => subscription.failing_since ?? undefined },
  { title: "Blocked by", value: blockOf },
  { title: "Slowed until", value: (subscription) => subscription.slowed_until ?? undefined },
  { title: "Created", value: (subscription) => subscription.timestamped },
];

export const NEW_SUBSCRIPTION_RECORD: readonly Column<SubscriptionWithSecret>[] = [
  ...SUBSCRIPTION_RECORD,
  { title: "Secret", value: (subscription) => subscription.secret },
];

function stateOf({ active, blocked_by, failing_since, disabled_reason }: Subscription): string {
  if (!active) return disabled_reason === null ? "paused" : "deactivated";
  if (blocked_by !== null) return "blocked";
  return failing_since === null ? "active" : "failing";
}

function blockOf({ active, blocked_by: delivery }: Subscription): string | undefined {
  if (delivery === null) return undefined;
  const state = active ? "tried on" : "held until it is active again";
  return `delivery ${delivery}, which is ${state}; to go past it: ${nextCommand(`deliveries skip ${delivery}`)}`;
}

function toneOfState(subscription: Subscription): "green" | "yellow" {
  return stateOf(subscription) === "active" ? "green" : "yellow";
}

/** Told where it is not the secret, as it is unless asked for. */
function bearerOf({ bearer }: Subscription): string | undefined {
  return { secret: undefined, own: "a value of its own", none: "none" }[bearer];
}

function headersOf({ headers }: Subscription): string | undefined {
  if (headers === null) return undefined;
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

function waitsOf({ retry_schedule: waitsMs }: Subscription): string | undefined {
  return waitsMs?.map((waitMs) => `${waitMs / 1_000} s`).join(", ");
}

function orderOf({ ordered, on_exhausted: exhausted }: Subscription): string | undefined {
  if (!ordered) return undefined;
  return exhausted === "skip" ? "yes, past those that fail for good" : "yes, none is passed over";
}

function oldSecretOf({ previous_secret_until: until }: Subscription): string | undefined {
  return until === null ? undefined : `valid until ${until}`;
}
