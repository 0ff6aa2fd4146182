import { useEffect } from "preact/hooks";
import type { Attention, AttentionMeta } from "../../domain/operations.ts";
import { type ApiError, type Envelope, useResource } from "./resource.ts";
import { maySome } from "./session.ts";
import { shared } from "./shared.ts";

type AttentionAnswer = Envelope<readonly Attention[], AttentionMeta>;

/** What needs a person, read once for the navigation and the overview. */
export const attention = shared<{
  readonly answer: AttentionAnswer | undefined;
  readonly error: ApiError | undefined;
}>({ answer: undefined, error: undefined });

const EVERY_MS = 5_000;
/** What has failed or been slowed for less than this mends itself more often than not. */
const SETTLES_MS = 60_000;

/** Keeps it up to date, where the token may read anything, and draws its component with all beneath it when it changes. */
export function useAttention(): void {
  attention.use();
  const { answer, error } = useResource<readonly Attention[], AttentionMeta>(
    maySome("read") ? "/v1/attention" : undefined,
    { everyMs: EVERY_MS },
  );
  useEffect(() => {
    attention.value = { answer, error };
  }, [answer, error]);
}

/** A subscription that needs a person: for its state, for deliveries that failed for good, or for both. */
export interface SubscriptionAttention {
  readonly id: number;
  readonly application: string;
  readonly subscription: string;
  readonly state: Attention | undefined;
  readonly failed: Attention | undefined;
}

/** Each subscription that needs a person, the gravest first. */
export function attentionBySubscription(
  items: readonly Attention[],
  now: number,
): readonly SubscriptionAttention[] {
  const lasting = items.filter(
    ({ reason, since }) =>
      (reason !== "failing" && reason !== "slowed") ||
      since === null ||
      now - Date.parse(since) >= SETTLES_MS,
  );
  const bySubscription = Map.groupBy(lasting, ({ subscription_id: id }) => id);
  return [...bySubscription].map(([id, reasons]) => ({
    id,
    application: reasons[0]!.application,
    subscription: reasons[0]!.subscription,
    state: reasons.find(({ reason }) => reason !== "failed"),
    failed: reasons.find(({ reason }) => reason === "failed"),
  }));
}

/** How many subscriptions need a person; an answer that is cut short tells only how many it is of. */
export function attentionCount({ data, meta }: AttentionAnswer, now: number): number {
  const listed = attentionBySubscription(data, now).length;
  return meta === undefined || meta.total <= data.length ? listed : Math.max(listed, meta.subscriptions);
}
