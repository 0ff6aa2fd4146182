import { useEffect } from "preact/hooks";
import type { Delivery, DeliveryWithAttempts } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { useResource } from "../../api/resource.ts";
import { Attempts } from "../../parts/attempts.tsx";
import { CopyCommand } from "../../parts/copy.tsx";
import { DeliveryActs, SubscriptionLink } from "../../parts/delivery-acts.tsx";
import { Failed, Say, Waiting } from "../../parts/states.tsx";
import { MEANING, Status } from "../../parts/status.tsx";
import { numberText, Time, useNow } from "../../parts/time.tsx";
import { waitsFor } from "../../parts/waits-for.tsx";
import { linkTo, type Query } from "../../shell/route.ts";
import { RequestView } from "./request-view.tsx";

const EVERY_MS = 2_000;

/**
 * One delivery: its attempts, the answers, and the request.
 * @param props.wasRead called whenever it has been read, so that the list does not say something else
 */
export function DeliveryDetail(props: {
  readonly id: string;
  readonly query: Query;
  readonly wasRead: (delivery: Delivery) => void;
}) {
  const { id, query, wasRead } = props;
  const path = `/v1/deliveries/${encodeURIComponent(id)}`;
  const { answer, error, reload } = useResource<DeliveryWithAttempts>(path, { everyMs: EVERY_MS });
  const delivery = answer?.data;
  useEffect(() => {
    if (delivery !== undefined) wasRead(delivery);
  }, [delivery]);
  const of = delivery?.subscription_id;
  const subscription = useResource<Subscription>(of === undefined ? undefined : `/v1/subscriptions/${of}`, {
    everyMs: 2 * EVERY_MS,
  }).answer?.data;
  const now = useNow();
  const back = (
    <a class="back btn bare" href={linkTo(["deliveries"], { ...query, attempt: undefined })}>
      All deliveries
    </a>
  );
  if (delivery === undefined) {
    return (
      <article class="detail">
        {back}
        <Waiting error={error} reload={reload} />
      </article>
    );
  }
  const picked = Number(query["attempt"] ?? 0);
  const isKept = delivery.attempts.some(({ attempt }) => attempt === picked);
  const last = delivery.attempts.at(-1)?.attempt ?? delivery.attempt;
  return (
    <article class="detail" tabIndex={-1} aria-label={`Delivery ${delivery.rowid}`}>
      {back}
      <header class="head">
        <div class="what">
          <h2 class="h1">
            <SubscriptionLink of={delivery} />
          </h2>
          <p class="facts">
            <Status state={delivery.status} badge />
            <span>
              <b>Delivery</b> {delivery.rowid}
            </span>
            <span>
              <b>Event</b> <a href={linkTo(["events", delivery.event_id])}>{delivery.event_id}</a>
            </span>
            <span>
              <b>Action</b> <a href={linkTo(["actions", delivery.action])}>{delivery.action}</a>
            </span>
            <span>
              <b>Created</b> <Time at={delivery.timestamped} exact />
            </span>
            {delivery.finished_at !== null && (
              <span>
                <b>Ended</b> <Time at={delivery.finished_at} exact />
              </span>
            )}
          </p>
        </div>
        <div class="acts">
          <DeliveryActs delivery={delivery} subscription={subscription} done={reload} />
          <CopyCommand text={`evreg deliveries get ${delivery.rowid}`} />
        </div>
      </header>
      {error !== undefined && <Failed error={error} />}
      {subscription?.blocked_by === delivery.rowid && (
        <Say state="blocked" title="It blocks the deliveries behind it">
          It has used up its retries and is tried on. <SubscriptionLink of={delivery} /> is ordered: the
          others
          {subscription.blocked_keys === null ? "" : " of its key"} wait until it is delivered or given up.
        </Say>
      )}
      <section>
        <header>
          <h2>Attempts</h2>
          <p>{summaryOf(delivery, waitsFor(delivery, subscription, now))}</p>
        </header>
        <div class="panel">
          <Attempts
            delivery={delivery}
            subscription={subscription}
            picked={isKept ? picked : undefined}
            linkOf={(attempt) => linkTo(["deliveries", delivery.rowid], { ...query, attempt })}
          />
        </div>
      </section>
      <RequestView
        delivery={delivery}
        subscription={subscription}
        attempt={isKept ? picked : Math.max(1, last)}
      />
    </article>
  );
}

function summaryOf({ status, attempt, last_error: error }: Delivery, waits: string | undefined): string {
  const tried = `${numberText(attempt)} ${attempt === 1 ? "attempt" : "attempts"}`;
  if (attempt === 0) return waits === undefined ? MEANING[status] : `Not tried yet: it waits ${waits}.`;
  return error === null ? tried : `${tried}, the last one with ${error}`;
}
