import type { Attention } from "../../../domain/operations.ts";
import type { Delivery } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import type { SubscriptionState } from "../../../domain/words/attention.ts";
import { may } from "../../api/identity.ts";
import { send, withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { useActing } from "../../parts/acting.ts";
import { Button } from "../../parts/button.tsx";
import { linkTo } from "../../parts/route.ts";
import { Say } from "../../parts/states.tsx";
import { Relative, Time, useNow } from "../../parts/time.tsx";
import { say, sayError } from "../../parts/toast.tsx";
import { DeliveryActs } from "../../records/delivery-acts.tsx";
import { AttentionWords, isAhead, needOf, stateNow } from "../../records/subscription-state.tsx";

const EVERY_MS = 3_000;

const TITLES: Readonly<Record<SubscriptionState, string>> = {
  deactivated: "evreg has deactivated it",
  blocked: "A delivery has used up its retries, and those behind it wait",
  failing: "Its last attempt failed",
  unclaimed: "Deliveries wait, and no consumer claims them",
  slowed: "The handler asked for time",
  paused: "A person has paused it",
  active: "Deliveries have failed for good",
};

/** How a subscription is, why, what happens next, and what a person can do. Nothing, where all is well. */
export function StateInWords(props: { readonly subscription: Subscription; readonly activate: () => void }) {
  const { subscription, activate } = props;
  const { rowid, application, active, mode, blocked_by: blockedBy, slowed_until: until } = subscription;
  const now = useNow();
  const state = stateNow(subscription, now);
  const item = state === "active" ? undefined : needOf(rowid, state);
  const failed = needOf(rowid, "failed");
  const mayWrite = may(mode === "push" ? "write" : "listen", application);
  const isFailing = state === "failing" || state === "slowed";
  const path = withQuery("/v1/deliveries", { subscription: rowid, status: "waiting", limit: 1 });
  const waiting = useResource<readonly Delivery[]>(isFailing ? path : undefined, { everyMs: EVERY_MS }).answer
    ?.data[0];
  const { act } = useActing(sayError);
  const sendOne = ({ rowid: delivery }: Delivery): void =>
    void act(async () => {
      await send("POST", `/v1/deliveries/${delivery}/retry`);
      say(`Delivery ${delivery} is sent now.`);
    });
  if (state === "active" && failed === undefined) return null;
  const replay = (status: string, from?: string | null): string =>
    linkTo(["subscriptions", rowid, "replay"], { status, from });
  return (
    <Say
      state={state === "active" ? "failed" : state}
      title={TITLES[state]}
      button={
        mayWrite && (
          <span class="acts row">
            {!active && <Button run={activate} label="Resume" />}
            {failed !== undefined && (
              <Button to={replay("failed", failed.published_from)} label="Send them again…" />
            )}
            {blockedBy !== null && active && <BlockingActs id={blockedBy} subscription={subscription} />}
            {isFailing && (
              <>
                {waiting !== undefined && <Button run={() => sendOne(waiting)} label="Send one now" />}
                <Button to={replay("waiting")} label="Send all that wait…" />
              </>
            )}
          </span>
        )
      }
    >
      {item === undefined ? (
        subscription.disabled_reason
      ) : (
        <>
          It <AttentionWords item={item} />
        </>
      )}
      {!active && <Held item={item} replay={replay("missed", item?.since)} />}
      {active && isAhead(until, now) && (
        <>
          {" "}
          Nothing is sent before <Time at={until} />, <Relative at={until} />.
        </>
      )}
      {state === "failing" && typeof waiting?.next_attempt_at === "string" && (
        <>
          {" "}
          Delivery {waiting.rowid} is tried again <Relative at={waiting.next_attempt_at} />.
        </>
      )}
      {state === "blocked" && (
        <>
          {" "}
          <a href={linkTo(["deliveries", blockedBy ?? ""])}>Delivery {blockedBy}</a> is tried on until it is
          delivered or given up.
        </>
      )}
      {state === "unclaimed" && (
        <>
          {" "}
          A consumer claims with <code>{`POST /v1/subscriptions/${rowid}/claims`}</code>.
        </>
      )}
      {failed !== undefined && (
        <>
          {" "}
          <a href={linkTo(["deliveries"], { subscription: rowid, status: "failed" })}>
            <AttentionWords item={failed} />
          </a>
        </>
      )}
    </Say>
  );
}

/** What a pause does to deliveries and events. */
function Held({ item, replay }: { readonly item: Attention | undefined; readonly replay: string }) {
  const missed = item?.missed ?? 0;
  return (
    <>
      {" "}
      What is held is sent when it is resumed.{" "}
      {missed === 0 ? (
        "What is published meanwhile is missed: only a replay sends it."
      ) : (
        <>
          What is missed has no delivery: <a href={replay}>a replay sends it</a>.
        </>
      )}
    </>
  );
}

/** What can be done with the delivery that blocks it. */
function BlockingActs(props: { readonly id: number; readonly subscription: Subscription }) {
  const { id, subscription } = props;
  const delivery = useResource<Delivery>(`/v1/deliveries/${id}`, { everyMs: EVERY_MS }).answer?.data;
  return delivery === undefined ? null : <DeliveryActs delivery={delivery} subscription={subscription} />;
}
