import { useEffect, useRef } from "preact/hooks";
import type { Delivery } from "../../domain/delivery.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { askJson, send, withQuery } from "../api/resource.ts";
import { may } from "../api/session.ts";
import { confirm, say, sayError, useActing } from "../parts/acting.ts";
import { NONE } from "../parts/layout.tsx";
import { numberText, Until, useNow } from "../parts/values.tsx";
import { canRetry, canSkip } from "./attempt-times.ts";
import { SubscriptionName } from "./subscription.tsx";

export interface DeliveryProps<D = Delivery> {
  readonly delivery: D;
  /** `undefined` if it is not known, or gone. */
  readonly subscription: Subscription | undefined;
}

/** What a person can do with a delivery now: send it, or give it up. */
export function DeliveryActs({ delivery, subscription }: DeliveryProps) {
  const { isBusy, act } = useActing(sayError);
  const place = useRef<HTMLElement | null>(null);
  useEffect(() => {
    // The button that was pressed may be gone now, and the focus with it.
    if (place.current === null || document.activeElement !== document.body) return;
    place.current.focus({ preventScroll: true });
    place.current = null;
  });
  if (!may("write", delivery.application)) return null;
  // While it is busy the button is not `disabled`: it would lose the focus.
  const button = (label: string, look: string, run: () => Promise<void>) => (
    <button
      class={look}
      aria-disabled={isBusy}
      onClick={({ currentTarget }) => {
        if (isBusy) return;
        place.current = currentTarget.closest("[tabindex='-1']");
        act(run);
      }}
    >
      {label}
    </button>
  );
  return (
    <>
      {canRetry(delivery) &&
        button(delivery.status === "waiting" ? "Send now" : "Send again", "btn", () => retry(delivery))}
      {canSkip(delivery) && button("Give up…", "btn bare", () => giveUp(delivery, subscription))}
    </>
  );
}

async function retry(delivery: Delivery): Promise<void> {
  const { rowid, status } = delivery;
  if (status === "delivered" || status === "filtered") {
    const yes = await confirm({
      title: `Send delivery ${rowid} again?`,
      body:
        status === "delivered" ? (
          <>
            <SubscriptionName record={delivery} /> has received it, and receives it once more.
          </>
        ) : (
          <>
            The filter of <SubscriptionName record={delivery} /> is applied again, as it is now.
          </>
        ),
      act: "Send it again",
    });
    if (!yes) return;
  }
  const { data } = await send<Delivery>("POST", `/v1/deliveries/${rowid}/retry`);
  if (data.status === "held") say(`Delivery ${rowid} is held: its subscription is paused.`);
}

const COUNTED_MOST = 500;

/** How many of its subscription are not finished and younger, as text. */
async function countBehind({ rowid, subscription_id: subscription }: Delivery): Promise<string> {
  const path = withQuery("/v1/deliveries", { subscription, status: "pending", limit: COUNTED_MOST });
  const { data } = await askJson<readonly Delivery[]>(path);
  const behind = data.filter((other) => other.rowid > rowid).length;
  return behind === COUNTED_MOST ? `${numberText(behind)} or more` : numberText(behind);
}

async function giveUp(delivery: Delivery, subscription: Subscription | undefined): Promise<void> {
  const { rowid, event_id: event } = delivery;
  const name = (
    <strong class="strong">
      <SubscriptionName record={delivery} />
    </strong>
  );
  const isOrdered = subscription !== undefined && subscription.ordered !== false;
  const behind = isOrdered ? await countBehind(delivery) : "0";
  const yes = await confirm({
    title: `Give up delivery ${rowid}?`,
    body: (
      <>
        <p>
          It then has failed. {name} does not get event {event}
          {isOrdered ? ", and goes on with the next one." : "."}
        </p>
        {behind !== "0" && <p>The {behind} behind it follow, one after the other.</p>}
        <p>It can be sent again later{isOrdered ? ", then out of its order." : "."}</p>
      </>
    ),
    act: "Give it up",
    keep: "Keep trying",
    danger: true,
  });
  if (!yes) return;
  await send<Delivery>("POST", `/v1/deliveries/${rowid}/skip`);
  say(`Delivery ${rowid} is given up.`);
}

/**
 * What a delivery that is due waits for, as far as its subscription tells.
 * @returns `undefined` where it waits for nothing but its turn
 */
export function waitsFor(
  { rowid, status, next_attempt_at: next }: Delivery,
  subscription: Subscription | undefined,
  now: number,
): string | undefined {
  if (status !== "pending" || subscription === undefined) return undefined;
  const { mode, ordered, blocked_by: blockedBy } = subscription;
  // The deliveries of some keys only are blocked in one that is ordered by key.
  if (ordered === true && blockedBy !== null && blockedBy < rowid) return `behind delivery ${blockedBy}`;
  if (mode === "pull" && (next === null || Date.parse(next) <= now)) return "for a consumer";
  if (next !== null) return undefined;
  return ordered === true ? "for an earlier one" : "for an earlier one of its key";
}

/** When it is tried next, or what it waits for. */
export function Next({ delivery, subscription }: DeliveryProps) {
  const words = waitsFor(delivery, subscription, useNow());
  if (words !== undefined) return <>{words}</>;
  const { next_attempt_at: next } = delivery;
  return next === null ? NONE : <Until at={next} />;
}
