import type { Attention, AttentionReason } from "../operations.ts";
import type { Subscription } from "../subscription.ts";

// How a subscription is, and what is said where it needs a person. A browser loads this too.

/** The gravest first. */
export const SUBSCRIPTION_STATES = [
  "deactivated",
  "blocked",
  "failing",
  "unclaimed",
  "slowed",
  "paused",
  "active",
] as const satisfies readonly (AttentionReason | "active")[];
export type SubscriptionState = (typeof SUBSCRIPTION_STATES)[number];

/**
 * Answers the gravest of what is true of a subscription.
 * @param isUnclaimed whether deliveries wait for consumers that do not come, which only the list of what needs a person tells
 */
export function subscriptionState(
  subscription: Pick<
    Subscription,
    "active" | "disabled_reason" | "blocked_by" | "failing_since" | "slowed_until"
  >,
  nowMs: number,
  isUnclaimed = false,
): SubscriptionState {
  const { active, slowed_until: until } = subscription;
  if (!active) return subscription.disabled_reason === null ? "paused" : "deactivated";
  if (subscription.blocked_by !== null) return "blocked";
  if (subscription.failing_since !== null) return "failing";
  if (isUnclaimed) return "unclaimed";
  return until !== null && Date.parse(until) > nowMs ? "slowed" : "active";
}

/** Words, or what a page shows in its own way: a time in ISO 8601, an error of an attempt. */
export type SentencePart = string | { readonly time: string } | { readonly error: string };
type Clause = readonly SentencePart[];
/** What needs a person, before it is said in a sentence. */
export type AttentionItem = Omit<Attention, "found">;

const CLAUSES: Readonly<Record<AttentionReason, (item: AttentionItem) => readonly Clause[]>> = {
  deactivated: (item) => [
    ["was deactivated", ...timeOf("at", item.since)],
    held(item),
    missed(item),
    [item.error ?? ""],
  ],
  blocked: (item) => [
    [`is blocked by delivery ${item.delivery_id}`, ...timeOf("and fails since", item.since)],
    [`${counted(item, "waits", "wait")} behind it`],
    lastError(item),
  ],
  failing: (item) => [
    ["fails", ...timeOf("since", item.since)],
    [counted(item, "waits", "wait")],
    lastError(item),
  ],
  failed: (item) => [
    [`${counted(item, "has", "have")} failed for good`, ...timeOf("since", item.since)],
    [`the last is delivery ${item.delivery_id}`],
    lastError(item),
  ],
  unclaimed: (item) => [
    ["is a pull subscription from which nobody claims", ...timeOf("since", item.since)],
    [counted(item, "waits", "wait")],
    ["start a consumer, or delete it"],
  ],
  slowed: (item) => [["gets no attempt", ...timeOf("until", item.until)], [counted(item, "waits", "wait")]],
  paused: (item) => [["is paused", ...timeOf("since", item.since)], held(item), missed(item)],
};

/** What is said of a subscription that needs a person, without its name. */
export function attentionSentence(item: AttentionItem): readonly SentencePart[] {
  const clauses = CLAUSES[item.reason](item).filter((clause) => clause.some((part) => part !== ""));
  const parts = clauses.flatMap((clause, index) => [index === 0 ? [] : ["; "], clause].flat());
  const last = parts.at(-1);
  return typeof last === "string" && last.endsWith(".") ? parts : [...parts, "."];
}

/** The sentence as a text, with the name. */
export function attentionText(item: AttentionItem): string {
  const colon = item.reason === "failed" ? ":" : "";
  const words = attentionSentence(item).map((part) => {
    if (typeof part === "string") return part;
    return "time" in part ? part.time : part.error;
  });
  return `${item.application}/${item.subscription}${colon} ${words.join("")}`;
}

function timeOf(word: string, time: string | null): Clause {
  return time === null ? [] : [` ${word} `, { time }];
}

function held(item: AttentionItem): Clause {
  return [counted(item, "is held", "are held")];
}

function missed({ missed: events }: AttentionItem): Clause {
  if (events === null || events === 0) return [];
  return [`${events.toLocaleString("en")} ${events === 1 ? "event" : "events"} missed`];
}

function lastError({ error }: AttentionItem): Clause {
  return error === null ? [] : [{ error }];
}

/** `3 deliveries wait`, `no delivery waits` */
function counted({ deliveries: count, at_least }: AttentionItem, one: string, many: string): string {
  if (count === null || count === 0) return `no delivery ${one}`;
  const least = at_least ? "at least " : "";
  return `${least}${count.toLocaleString("en")} ${count === 1 ? `delivery ${one}` : `deliveries ${many}`}`;
}
