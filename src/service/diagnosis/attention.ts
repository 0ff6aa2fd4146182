import {
  type Attention,
  ATTENTION_LIMITS,
  ATTENTION_QUERY,
  type AttentionMeta,
  type AttentionQuery,
  type AttentionReason,
} from "../../domain/operations.ts";
import { toIso } from "../../runtime/clock.ts";
import type { AttentionSelection } from "../../store/queue.ts";
import type { Access } from "../auth.ts";
import type { ServiceContext } from "../context.ts";
import { checkQuery, omitUndefined } from "../requests.ts";

/** What of the subscriptions that the caller may read needs a person. */
export async function attentionFor(
  { store, clock }: Pick<ServiceContext, "store" | "clock">,
  access: Access,
  query: AttentionQuery = {},
): Promise<{ data: readonly Attention[]; meta: AttentionMeta }> {
  const applications = access.readable(query.application);
  const { limit = ATTENTION_LIMITS.listDefault } = checkQuery(ATTENTION_QUERY, query);
  const nowMs = clock.now();
  const selection = omitUndefined<AttentionSelection>({ nowMs, applications, limit });
  const { items, total, subscriptions } = await store.queue.attention(selection);
  const data = items.map((item) => Object.assign(item, { found: foundIn(item) }));
  return { data, meta: { total, subscriptions, time: toIso(nowMs) } };
}

type Item = Omit<Attention, "found">;

const WORDS: Readonly<Record<AttentionReason, (item: Item) => readonly (string | false)[]>> = {
  deactivated: (item) => [`was deactivated${time("at", item)}`, held(item), missed(item), reason(item)],
  blocked: (item) => [
    `is blocked by delivery ${item.delivery_id}${time("since", item)}`,
    `${counted(item, "waits", "wait")} behind it`,
    reason(item),
  ],
  failing: (item) => [`fails${time("since", item)}`, counted(item, "waits", "wait"), reason(item)],
  failed: (item) => [
    `${counted(item, "has", "have")} failed for good${time("since", item)}`,
    `the last is delivery ${item.delivery_id}`,
    reason(item),
  ],
  unclaimed: (item) => [
    `is a pull subscription from which nobody claims${time("since", item)}`,
    counted(item, "waits", "wait"),
    "start a consumer, or delete it",
  ],
  slowed: (item) => [`gets no attempt until ${item.until}`, counted(item, "waits", "wait")],
  paused: (item) => [`is paused${time("since", item)}`, held(item), missed(item)],
};

function foundIn(item: Item): string {
  const parts = WORDS[item.reason](item).filter((part) => part !== false);
  const colon = item.reason === "failed" ? ":" : "";
  return `${item.application}/${item.subscription}${colon} ${parts.join("; ")}`.replace(/\.?$/, ".");
}

function time(word: string, { since }: Item): string {
  return since === null ? "" : ` ${word} ${since}`;
}

function held(item: Item): string {
  return counted(item, "is held", "are held");
}

function missed({ missed: events }: Item): string | false {
  if (events === null || events === 0) return false;
  return `${events.toLocaleString("en")} ${events === 1 ? "event" : "events"} missed`;
}

function reason({ error }: Item): string | false {
  return error ?? false;
}

/** `3 deliveries wait`, `no delivery waits` */
function counted({ deliveries: count, at_least }: Item, one: string, many: string): string {
  if (count === null || count === 0) return `no delivery ${one}`;
  const least = at_least ? "at least " : "";
  return `${least}${count.toLocaleString("en")} ${count === 1 ? `delivery ${one}` : `deliveries ${many}`}`;
}
