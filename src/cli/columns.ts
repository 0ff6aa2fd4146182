import { actionState } from "../domain/action.ts";
import type { Action, ActionRevision } from "../domain/action.ts";
import type { Attempt, Delivery, DeliveryStatus } from "../domain/delivery.ts";
import type { Event } from "../domain/event.ts";
import type { Replay, ReplayCount } from "../domain/replay.ts";
import type { Subscription, SubscriptionWithSecret } from "../domain/subscription.ts";
import type { Token, TokenWithSecret } from "../domain/token.ts";
import { nextCommand } from "./next-command.ts";
import type { Column } from "./table.ts";

/**
 * What listings and single records show of each noun. Numbers and times are never cut; names give way first, then whole
 * columns, so that a row is one line on a terminal of 80 columns.
 */

const id = { title: "ID", align: "right" } as const;

export const ACTION_LIST: readonly Column<Action>[] = [
  { title: "ACTION", of: (action) => action.action, shrinkTo: 16 },
  { title: "APPLICATION", of: (action) => action.application, shrinkTo: 8 },
  { title: "REVISION", of: (action) => action.revision, align: "right" },
  { title: "STATE", of: actionState, tone: actionTone },
  { title: "MODE", of: modeOf },
  { title: "CREATED", of: (action) => action.timestamped, spare: 1 },
];

export const ACTION_RECORD: readonly Column<Action>[] = [
  { title: "Action", of: (action) => action.action },
  { title: "Application", of: (action) => action.application },
  { title: "ID", of: (action) => action.rowid },
  { title: "Revision", of: (action) => action.revision },
  { title: "State", of: actionState, tone: actionTone },
  { title: "Successor", of: (action) => action.successor ?? undefined },
  { title: "Mode", of: modeOf },
  { title: "Created", of: (action) => action.timestamped },
  { title: "Schema", of: (action) => JSON.stringify(action.schemata, null, 2), block: true },
];

/** @param changes what each revision changed, by its number */
export function revisionColumns(changes: ReadonlyMap<number, string>): readonly Column<ActionRevision>[] {
  return [
    { title: "REVISION", of: ({ revision }) => revision, align: "right" },
    { title: "APPLIED", of: ({ timestamped }) => timestamped },
    { title: "MODE", of: ({ admission }) => admission?.compatibility },
    { title: "BREAKS", of: ({ admission }) => admission?.breaks, align: "right" },
    { title: "CHANGES", of: ({ revision }) => changes.get(revision), shrinkTo: 16 },
  ];
}

export const EVENT_LIST: readonly Column<Event>[] = [
  { ...id, of: (event) => event.rowid },
  { title: "ACTION", of: (event) => event.action, shrinkTo: 12 },
  { title: "PUBLISHED", of: (event) => event.timestamped },
  { title: "PAYLOAD", of: (event) => preview(event), shrinkTo: 12 },
];

export const EVENT_RECORD: readonly Column<Event>[] = [
  { title: "Event", of: (event) => event.rowid },
  { title: "Action", of: (event) => event.action },
  { title: "Revision", of: (event) => event.revision },
  { title: "Published", of: (event) => event.timestamped },
  { title: "Payload", of: (event) => event.payload.text(), block: true },
];

/** Without the payload, which the person who published it has just typed. */
export const PUBLISHED_RECORD = EVENT_RECORD.filter((column) => column.title !== "Payload");

export const SUBSCRIPTION_LIST: readonly Column<Subscription>[] = [
  { ...id, of: (subscription) => subscription.rowid },
  { title: "APPLICATION", of: (subscription) => subscription.application, shrinkTo: 8 },
  { title: "SUBSCRIPTION", of: (subscription) => subscription.subscription, shrinkTo: 8 },
  { title: "ACTION", of: (subscription) => subscription.action, shrinkTo: 12 },
  { title: "STATE", of: stateOf, tone: toneOfState },
  { title: "RETRIES", of: (subscription) => subscription.max_retries, align: "right" },
  { title: "HANDLER", of: (subscription) => subscription.handler, shrinkTo: 16 },
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

export const DELIVERY_LIST: readonly Column<Delivery>[] = [
  { ...id, of: (delivery) => delivery.rowid },
  { title: "EVENT", of: (delivery) => delivery.event_id, align: "right", spare: 2 },
  { title: "ACTION", of: (delivery) => delivery.action, shrinkTo: 10, spare: 1 },
  { title: "SUBSCRIPTION", of: subscriptionOf, shrinkTo: 12 },
  { title: "STATUS", of: (delivery) => delivery.status, tone: (delivery) => toneOf(delivery.status) },
  { title: "ATTEMPTS", of: (delivery) => delivery.attempt, align: "right" },
  { title: "NEXT OR END", of: (delivery) => delivery.next_attempt_at ?? delivery.finished_at, spare: 3 },
  { title: "LAST ERROR", of: (delivery) => delivery.last_error, shrinkTo: 8 },
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

export const REPLAY_LIST: readonly Column<Replay>[] = [
  { ...id, of: (replay) => replay.rowid },
  {
    title: "SUBSCRIPTION",
    of: (replay) => `${replay.subscription_id} ${subscriptionOf(replay)}`,
    shrinkTo: 12,
  },
  { title: "ACTION", of: (replay) => replay.action, shrinkTo: 10, spare: 1 },
  { title: "EVENTS", of: (replay) => replay.selection },
  { title: "STATUS", of: (replay) => replay.status, tone: replayTone },
  { title: "QUEUED", of: (replay) => replay.queued, align: "right" },
  { title: "TOTAL", of: (replay) => replay.total, align: "right" },
  { title: "BEGUN", of: (replay) => replay.timestamped },
];

const REPLAYED: readonly Column<ReplayCount | Replay>[] = [
  { title: "Subscription", of: (replay) => `${replay.subscription_id} ${subscriptionOf(replay)}` },
  { title: "Action", of: (replay) => replay.action },
  { title: "Events", of: (replay) => replay.selection },
  { title: "From", of: (replay) => replay.from },
  { title: "To", of: (replay) => replay.to },
  { title: "Total", of: (replay) => replay.total ?? "not counted yet" },
];

export const REPLAY_COUNT_RECORD: readonly Column<ReplayCount>[] = REPLAYED;

export const REPLAY_RECORD: readonly Column<Replay>[] = [
  { title: "Replay", of: (replay) => replay.rowid },
  ...REPLAYED,
  { title: "Status", of: (replay) => replay.status, tone: replayTone },
  { title: "Reason", of: (replay) => replay.reason ?? undefined },
  { title: "Queued", of: (replay) => replay.queued },
  { title: "Skipped", of: (replay) => (replay.skipped === 0 ? undefined : replay.skipped) },
  { title: "Begun", of: (replay) => replay.timestamped },
  { title: "Finished", of: (replay) => replay.finished_at ?? undefined },
];

export const TOKEN_LIST: readonly Column<Token>[] = [
  { ...id, of: (token) => token.rowid },
  { title: "NAME", of: (token) => token.name, shrinkTo: 8 },
  { title: "SCOPES", of: (token) => token.scopes.join(" "), shrinkTo: 8 },
  { title: "EXPIRES", of: (token) => token.expires_at ?? "never" },
  { title: "LAST USED", of: (token) => token.last_used_at ?? "never" },
];

export const TOKEN_RECORD: readonly Column<Token>[] = [
  { title: "ID", of: (token) => token.rowid },
  { title: "Name", of: (token) => token.name },
  { title: "Scopes", of: (token) => token.scopes.join(" ") },
  { title: "Expires", of: (token) => token.expires_at ?? "never" },
  { title: "Created", of: (token) => token.timestamped },
];

export const NEW_TOKEN_RECORD: readonly Column<TokenWithSecret>[] = [
  ...TOKEN_RECORD,
  { title: "Token", of: (token) => token.token },
];

/** A listing shows how a payload begins; `events get` and `--json` show all of it. */
const PREVIEW_BYTES = 240;

function preview(event: Event): string {
  const { bytes } = event.payload;
  const start = Buffer.from(bytes.subarray(0, PREVIEW_BYTES)).toString("utf8").replace(/\s+/g, " ");
  return bytes.length > PREVIEW_BYTES ? `${start.replace(/\ufffd+$/, "")}…` : start;
}

function actionTone(action: Action): "green" | "yellow" | "dim" {
  return ({ active: "green", deprecated: "yellow", retired: "dim" } as const)[actionState(action)];
}

function modeOf({ compatibility, compatibility_against: against }: Action): string {
  return against === "all" && compatibility !== "none" ? `${compatibility}, against all` : compatibility;
}

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

function subscriptionOf(record: Pick<Delivery, "application" | "subscription">): string {
  return `${record.application}/${record.subscription}`;
}

function replayTone({ status }: Replay): "green" | "yellow" | "red" | "dim" {
  if (status === "done") return "green";
  if (status === "failed") return "red";
  return status === "cancelled" ? "dim" : "yellow";
}

function toneOf(status: DeliveryStatus): "green" | "yellow" | "red" | "dim" {
  if (status === "delivered") return "green";
  if (status === "failed") return "red";
  return status === "filtered" || status === "cancelled" ? "dim" : "yellow";
}
