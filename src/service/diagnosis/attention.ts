import { attentionText } from "../../domain/attention.ts";
import {
  type Attention,
  ATTENTION_LIMITS,
  ATTENTION_QUERY,
  type AttentionMeta,
  type AttentionQuery,
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
  const data = items.map((item) => Object.assign(item, { found: attentionText(item) }));
  return { data, meta: { total, subscriptions, time: toIso(nowMs) } };
}
