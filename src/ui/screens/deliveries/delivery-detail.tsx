import type { Query } from "../../api/request.ts";
import type { Delivery, DeliveryWithAttempts } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { type AnyMeta, type Resource, useResource } from "../../api/resource.ts";
import { CopyCommand } from "../../parts/copy.tsx";
import { Head, Section } from "../../parts/layout.tsx";
import { linkTo } from "../../parts/route.ts";
import { Detail, Failed, Say } from "../../parts/states.tsx";
import { MEANING, Status } from "../../parts/status.tsx";
import { countText } from "../../parts/texts.ts";
import { Time, useNow } from "../../parts/time.tsx";
import { Attempts } from "../../records/attempts.tsx";
import { DeliveryActs, SubscriptionLink } from "../../records/delivery-acts.tsx";
import { waitsFor } from "../../records/waits-for.tsx";
import { RequestView } from "./request-view.tsx";

const EVERY_MS = 4_000;

/** One delivery: its attempts, the answers, and the request. */
export function DeliveryDetail(props: {
  readonly id: string;
  readonly of: Resource<DeliveryWithAttempts, AnyMeta>;
  readonly query: Query;
}) {
  const { id, of, query } = props;
  const subscriber = of.answer?.data.subscription_id;
  const subscription = useResource<Subscription>(
    subscriber === undefined ? undefined : `/v1/subscriptions/${subscriber}`,
    { everyMs: EVERY_MS },
  ).answer?.data;
  const now = useNow();
  const picked = Number(query["attempt"] ?? 0);
  const list = linkTo(["deliveries"], { ...query, attempt: undefined });
  return (
    <Detail of={of} label={`Delivery ${id}`} back={["All deliveries", list]}>
      {(delivery) => (
        <>
          <Head
            isRecord
            title={<SubscriptionLink of={delivery} />}
            status={<Status state={delivery.status} badge />}
            facts={{
              Delivery: delivery.rowid,
              Event: <a href={linkTo(["events", delivery.event_id])}>{delivery.event_id}</a>,
              Action: <a href={linkTo(["actions", delivery.action])}>{delivery.action}</a>,
              Created: <Time at={delivery.timestamped} exact />,
              Ended: delivery.finished_at !== null && <Time at={delivery.finished_at} exact />,
            }}
            acts={
              <>
                <DeliveryActs delivery={delivery} subscription={subscription} />
                <CopyCommand text={`evreg deliveries get ${delivery.rowid}`} />
              </>
            }
          />
          {of.error !== undefined && <Failed error={of.error} />}
          {subscription?.blocked_by === delivery.rowid && (
            <Say state="blocked" title="It blocks the deliveries behind it">
              It has used up its retries and is tried on. <SubscriptionLink of={delivery} /> is ordered: the
              others
              {subscription.blocked_keys === null ? "" : " of its key"} wait until it is delivered or given
              up.
            </Say>
          )}
          <Section title="Attempts" note={summaryOf(delivery, waitsFor(delivery, subscription, now))}>
            <div class="panel">
              <Attempts
                delivery={delivery}
                subscription={subscription}
                picked={picked}
                linkOf={(attempt) => linkTo(["deliveries", delivery.rowid], { ...query, attempt })}
              />
            </div>
          </Section>
          <RequestView delivery={delivery} subscription={subscription} picked={picked} />
        </>
      )}
    </Detail>
  );
}

function summaryOf({ status, attempt, last_error: error }: Delivery, waits: string | undefined): string {
  const tried = countText(attempt, "attempt");
  if (attempt === 0) return waits === undefined ? MEANING[status] : `Not tried yet: it waits ${waits}.`;
  return error === null ? tried : `${tried}, the last one with ${error}`;
}
