import { Button } from "../../parts/button.tsx";
import type { Attention } from "../../../domain/operations.ts";
import type { Delivery } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { may } from "../../api/identity.ts";
import { send, withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { DeliveryActs } from "../../records/delivery-acts.tsx";
import { useActing } from "../../parts/acting.ts";
import { Say } from "../../parts/states.tsx";
import { heldBack, isAhead, needOf, stateNow } from "../../records/subscription-state.ts";
import { numberText, Relative, Time, useNow } from "../../parts/time.tsx";
import { linkTo } from "../../parts/route.ts";
import { say, sayError } from "../../parts/toast.tsx";

const EVERY_MS = 3_000;

/** How a subscription is, why, what happens next, and what a person can do. Nothing, where all is well. */
export function StateInWords(props: { readonly subscription: Subscription; readonly activate: () => void }) {
  const { subscription, activate } = props;
  const {
    rowid,
    application,
    blocked_by: blockedBy,
    failing_since: since,
    slowed_until: until,
  } = subscription;
  const now = useNow();
  const state = stateNow(subscription, now);
  const isFailing = state === "failing" || state === "slowed" || state === "blocked";
  const waiting = useResource<readonly Delivery[]>(
    isFailing ? withQuery("/v1/deliveries", { subscription: rowid, status: "waiting", limit: 1 }) : undefined,
    { everyMs: EVERY_MS },
  ).answer?.data[0];
  const blocking = useResource<Delivery>(blockedBy === null ? undefined : `/v1/deliveries/${blockedBy}`, {
    everyMs: EVERY_MS,
  }).answer?.data;
  const mayWrite = may(subscription.mode === "push" ? "write" : "listen", application);
  const { act } = useActing(sayError);
  const resume = mayWrite && <Button run={activate} label="Resume" />;
  const sendOne = ({ rowid: delivery }: Delivery): void =>
    void act(async () => {
      await send("POST", `/v1/deliveries/${delivery}/retry`);
      say(`Delivery ${delivery} is sent now.`);
    });
  const failing = since !== null && (
    <>
      {" "}
      Every attempt since <Time at={since} /> has failed
      {typeof waiting?.last_error === "string" && (
        <>
          , the last with <code>{waiting.last_error}</code>
        </>
      )}
      .
    </>
  );
  const held = <Held item={heldBack(rowid)} id={rowid} />;
  const failed = needOf(rowid, "failed");
  const again = failed !== undefined && mayWrite && (
    <Button
      to={linkTo(["subscriptions", rowid, "replay"], { status: "failed", from: failed.published_from })}
      label="Send them again…"
    />
  );
  const failures = failed !== undefined && (
    <a href={linkTo(["deliveries"], { subscription: rowid, status: "failed" })}>
      {failed.at_least && "At least "}
      {numberText(failed.deliveries ?? 0)} {failed.deliveries === 1 ? "has" : "have"} failed for good within a
      day.
    </a>
  );
  if (state === "active") return failures && <Say state="failed" title={failures} button={again} />;
  if (state === "unclaimed") {
    const item = needOf(rowid, "unclaimed");
    return (
      <Say state={state} title="Deliveries wait, and no consumer claims them">
        {item !== undefined && (
          <>
            {item.at_least && "At least "}
            {numberText(item.deliveries ?? 0)} {item.deliveries === 1 ? "waits" : "wait"}
            {item.since !== null && (
              <>
                {" "}
                since <Time at={item.since} />
              </>
            )}
            .{" "}
          </>
        )}
        {subscription.last_claim_at === null ? (
          "Nobody has ever claimed from it."
        ) : (
          <>
            The last claim was <Relative at={subscription.last_claim_at} />.
          </>
        )}{" "}
        A consumer claims with <code>{`POST /v1/subscriptions/${rowid}/claims`}</code>. What waits is kept.
      </Say>
    );
  }
  if (state === "deactivated") {
    return (
      <Say state={state} title="evreg has deactivated it" button={resume}>
        {subscription.disabled_reason} {held}
      </Say>
    );
  }
  if (state === "paused") {
    return (
      <Say state={state} title="A person has paused it" button={resume}>
        {held}
      </Say>
    );
  }
  if (state === "blocked" && blockedBy !== null) {
    const keys = subscription.blocked_keys;
    return (
      <Say
        state={state}
        title={
          <>
            <a href={linkTo(["deliveries", blockedBy])}>Delivery {blockedBy}</a> has used up its retries, and
            those behind it wait
          </>
        }
        button={
          blocking !== undefined && (
            <span class="row">
              <DeliveryActs delivery={blocking} subscription={subscription} />
            </span>
          )
        }
      >
        It is tried on
        {isAhead(until, now) && (
          <>
            , next <Relative at={until} />
          </>
        )}
        .{failing}
        {keys !== null && keys > 1 && ` ${keys >= 1_000 ? "At least 1,000" : keys} keys are blocked.`}
      </Say>
    );
  }
  return (
    <Say
      state={state}
      title={
        isAhead(until, now) ? (
          <>
            Nothing is sent before <Time at={until} />, <Relative at={until} />
          </>
        ) : (
          "Its last attempt failed"
        )
      }
      button={
        <span class="row">
          {again}
          {waiting !== undefined && mayWrite && <Button run={() => sendOne(waiting)} label="Send one now" />}
          {waiting !== undefined && mayWrite && (
            <Button
              to={linkTo(["subscriptions", rowid, "replay"], { status: "waiting" })}
              label="Send all that wait…"
            />
          )}
        </span>
      }
    >
      {isAhead(until, now) && "The handler asked for time."}
      {failing}
      {state === "failing" && typeof waiting?.next_attempt_at === "string" && (
        <>
          {" "}
          Delivery {waiting.rowid} is tried again <Relative at={waiting.next_attempt_at} />.
        </>
      )}{" "}
      {failures || "What waits is kept."}
    </Say>
  );
}

/** What a pause does to deliveries and events, counted as far as it is known. */
function Held({ item, id }: { readonly item: Attention | undefined; readonly id: number }) {
  const { deliveries, missed, since } = item ?? { deliveries: null, missed: null, since: null };
  return (
    <>
      {since !== null && (
        <>
          Since <Time at={since} />.{" "}
        </>
      )}
      {deliveries === null
        ? "Its unfinished deliveries are held: they are sent when it is resumed."
        : deliveries === 0
          ? "No delivery is held."
          : `${numberText(deliveries)} of its deliveries ${deliveries === 1 ? "is" : "are"} held: sent when it is resumed.`}{" "}
      {missed === null || missed === 0
        ? "What is published meanwhile is missed: it makes no delivery, and only a replay of what was missed sends it."
        : `${numberText(missed)} published since ${missed === 1 ? "is" : "are"} missed, without a delivery; `}
      {missed !== null && missed > 0 && (
        <a href={linkTo(["subscriptions", id, "replay"], { status: "missed", from: since })}>
          a replay sends them
        </a>
      )}
    </>
  );
}
