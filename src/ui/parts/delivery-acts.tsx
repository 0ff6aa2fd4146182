import { useEffect, useRef, useState } from "preact/hooks";
import type { Delivery } from "../../domain/delivery.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { may } from "../api/identity.ts";
import { ApiError } from "../api/api-error.ts";
import { askJson, withQuery } from "../api/request.ts";
import { noted } from "../api/resource.ts";
import { confirm } from "../shell/confirm.tsx";
import { linkTo } from "../shell/route.ts";
import { say, sayError } from "../shell/toast.tsx";
import { canRetry, canSkip } from "./attempt-times.ts";
import { numberText } from "./time.tsx";

/**
 * What a person can do with a delivery now: send it, or give it up.
 * @param props.subscription for what follows from giving up an ordered one
 * @param props.done called once it has another state
 */
export function DeliveryActs(props: {
  readonly delivery: Delivery;
  readonly subscription: Subscription | undefined;
  readonly done: () => void;
}) {
  const { delivery, subscription, done } = props;
  const [isBusy, setBusy] = useState(false);
  const place = useRef<HTMLElement | null>(null);
  const sentAfter = useRef<number | undefined>(undefined);
  useEffect(() => {
    // The button that was pressed may be gone now, and the focus with it.
    if (place.current === null || document.activeElement !== document.body) return;
    place.current.focus({ preventScroll: true });
    place.current = null;
  });
  useEffect(() => {
    const { rowid, attempt, status } = delivery;
    const before = sentAfter.current;
    if (before === undefined || attempt <= before || status === "pending" || status === "delivering") return;
    sentAfter.current = undefined;
    say(status === "delivered" ? `Delivery ${rowid} was delivered.` : `Delivery ${rowid} has failed again.`);
  }, [delivery]);
  if (!may("write", delivery.application)) return null;
  // While it is busy the button is not `disabled`: it would lose the focus.
  const run = async (button: HTMLElement, act: () => Promise<boolean>): Promise<void> => {
    if (isBusy) return;
    place.current = button.closest("[tabindex='-1']");
    setBusy(true);
    try {
      if (await act()) done();
    } catch (error) {
      sayError(noted(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      {canRetry(delivery) && (
        <button
          class="btn"
          aria-disabled={isBusy}
          onClick={(event) =>
            void run(event.currentTarget, async () => {
              sentAfter.current = await retry(delivery);
              return sentAfter.current !== undefined;
            })
          }
        >
          {delivery.status === "waiting" ? "Send now" : "Send again"}
        </button>
      )}
      {canSkip(delivery) && (
        <button
          class="btn bare"
          aria-disabled={isBusy}
          onClick={(event) => void run(event.currentTarget, () => giveUp(delivery, subscription))}
        >
          Give up…
        </button>
      )}
    </>
  );
}

/** Answers how many attempts it had before; `undefined` if it was not done. */
async function retry(delivery: Delivery): Promise<number | undefined> {
  const { rowid, status } = delivery;
  if (status === "delivered" || status === "filtered") {
    const yes = await confirm({
      title: `Send delivery ${rowid} again?`,
      body:
        status === "delivered" ? (
          <>
            <SubscriptionName of={delivery} /> has received it, and receives it once more.
          </>
        ) : (
          <>
            The filter of <SubscriptionName of={delivery} /> is applied again, as it is now.
          </>
        ),
      act: "Send it again",
    });
    if (!yes) return undefined;
  }
  const { data } = await askJson<Delivery>(`/v1/deliveries/${rowid}/retry`, { method: "POST" });
  if (data.status === "held") say(`Delivery ${rowid} is held: its subscription is paused.`);
  return data.attempt;
}

/** `undefined` if the token may not read it, or it is gone. */
async function subscriptionOf(id: number): Promise<Subscription | undefined> {
  try {
    return (await askJson<Subscription>(`/v1/subscriptions/${id}`)).data;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return undefined;
    throw error;
  }
}

const COUNTED_MOST = 500;

/** How many of its subscription are not finished and younger, as text. */
async function countBehind({ rowid, subscription_id: subscription }: Delivery): Promise<string> {
  const path = withQuery("/v1/deliveries", { subscription, status: "pending", limit: COUNTED_MOST });
  const { data } = await askJson<readonly Delivery[]>(path);
  const behind = data.filter((other) => other.rowid > rowid).length;
  return behind === COUNTED_MOST ? `${numberText(behind)} or more` : numberText(behind);
}

/** Answers whether it was done. */
async function giveUp(delivery: Delivery, known: Subscription | undefined): Promise<boolean> {
  const { rowid, event_id: event, subscription_id: id } = delivery;
  const subscription = known ?? (await subscriptionOf(id));
  const name = (
    <strong class="strong">
      <SubscriptionName of={delivery} />
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
  if (!yes) return false;
  await askJson<Delivery>(`/v1/deliveries/${rowid}/skip`, { method: "POST" });
  say(`Delivery ${rowid} is given up.`);
  return true;
}

/** `billing/invoices` */
export function nameOf(of: Pick<Delivery, "application" | "subscription">): string {
  return `${of.application}/${of.subscription}`;
}

/** It in a text. Each part stands by itself: in scripts that are written from right to left the two would change places. */
export function SubscriptionName({ of }: { readonly of: Pick<Delivery, "application" | "subscription"> }) {
  return (
    <>
      <bdi>{of.application}</bdi>/<bdi>{of.subscription}</bdi>
    </>
  );
}

/** The name of a delivery's subscription, as a link to it. */
export function SubscriptionLink({
  of,
}: {
  readonly of: Pick<Delivery, "subscription_id" | "application" | "subscription">;
}) {
  return (
    <a href={linkTo(["subscriptions", of.subscription_id])}>
      <SubscriptionName of={of} />
    </a>
  );
}
