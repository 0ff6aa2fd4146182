import { type Column, id } from "../cli/io/table.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import type { Subscription, SubscriptionWithSecret } from "../domain/subscription.ts";

export const SUBSCRIPTION_LIST: readonly Column<Subscription>[] = [
  { ...id, of: (subscription) => subscription.rowid },
  { title: "APPLICATION", of: (subscription) => subscription.application, shrinkTo: 8, whole: true },
  { title: "SUBSCRIPTION", of: (subscription) => subscription.subscription, shrinkTo: 8, whole: true },
  { title: "ACTION", of: (subscription) => subscription.action, shrinkTo: 12, whole: true },
  { title: "STATE", of: stateOf, tone: toneOfState },
  { title: "RETRIES", of: (subscription) => subscription.max_retries, align: "right", spare: 1 },
  { title: "HANDLER", of: (subscription) => subscription.handler, shrinkTo: 20, cut: "middle" },
];

export const SUBSCRIPTION_RECORD: readonly Column<Subscription>[] = [
  { title: "ID", of: (subscription) => subscription.rowid },
  { title: "Application", of: (subscription) => subscription.application },
  { title: "Subscription", of: (subscription) => subscription.subscription },
  { title: "Action", of: (subscription) => subscription.action },
  { title: "Handler", of: (subscription) => subscription.handler },
  { title: "Retries", of: (subscription) => subscription.max_retries },
  { title: "State", of: stateOf, tone: toneOfState },
  { title: "Reason", of: (subscription) => subscription.disabled_reason ?? undefined },
  { title: "Bearer", of: bearerOf },
  { title: "Filter", of: ({ filter }) => (filter === null ? undefined : JSON.stringify(filter)) },
  { title: "Rate limit", of: ({ rate_limit: rate }) => (rate === null ? undefined : `${rate} a second`) },
  { title: "In flight", of: ({ max_in_flight: most }) => (most === null ? undefined : `at most ${most}`) },
  {
    title: "Timeout",
    of: ({ timeout_ms: timeoutMs }) => (timeoutMs === null ? undefined : `${timeoutMs} ms`),
  },
  { title: "Headers", of: headersOf, lines: true },
  { title: "Waits", of: waitsOf },
  { title: "Ordered", of: orderOf },
  { title: "Old secret", of: oldSecretOf },
  { title: "Failing since", of: (subscription) => subscription.failing_since ?? undefined },
  { title: "Blocked by", of: blockOf },
  { title: "Slowed until", of: (subscription) => subscription.slowed_until ?? undefined },
  { title: "Created", of: (subscription) => subscription.timestamped },
];

export const NEW_SUBSCRIPTION_RECORD: readonly Column<SubscriptionWithSecret>[] = [
  ...SUBSCRIPTION_RECORD,
  { title: "Secret", of: (subscription) => subscription.secret },
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
