import type { ConsumersMeta, Subscription } from "../../../domain/subscription.ts";
import { askText, type Envelope } from "../../api/request.ts";
import { memberText } from "../../parts/json-tokens.ts";
import type { ReadSubscription } from "./draft.ts";

/** Reads a subscription and keeps the text of its filter as it is. */
export async function readSubscription(
  path: string,
  signal?: AbortSignal,
): Promise<Envelope<ReadSubscription, ConsumersMeta>> {
  const text = await askText(path, { signal });
  const answer = JSON.parse(text) as Envelope<Subscription, ConsumersMeta>;
  const filter = memberText(memberText(text, "data") ?? "{}", "filter");
  const filterText = answer.data.filter === null || filter === undefined ? null : filter;
  return { ...answer, data: { ...answer.data, filterText } };
}
