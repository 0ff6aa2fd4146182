import type { Query } from "../../api/request.ts";
import type { Delivery, DeliveryWithAttempts } from "../../../domain/delivery.ts";
import { DELIVERY_STATUSES } from "../../../model/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { useResource } from "../../api/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Section } from "../../parts/layout.tsx";
import { linkTo } from "../../parts/route.ts";
import { Loaded, Waiting } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { durationText, numberText, Until } from "../../parts/time.tsx";
import { Attempts } from "../../records/attempts.tsx";
import { DeliveryActs, SubscriptionName } from "../../records/delivery-acts.tsx";

const EVERY_MS = 2_000;
/** The address says so as `delivery` where none is open. */
const NONE = "none";
/** The others are in the list of deliveries. */
const MOST_SHOWN = 100;
const TROUBLE: ReadonlySet<string> = new Set(["failed", "waiting", "held"]);

/** Where an event went: a line for each subscription, and of one of them each attempt. */
export function EventDeliveries({ event, query }: { readonly event: number; readonly query: Query }) {
  const list = useResource<readonly Delivery[]>(`/v1/events/${event}/deliveries`, { everyMs: EVERY_MS });
  const all = list.answer?.data;
  // Whoever looks at an event that did not arrive everywhere wants to know why.
  const open = query["delivery"] ?? String(all?.find(({ status }) => TROUBLE.has(status))?.rowid);
  const linkOf = (delivery: number | string, attempt?: number): string =>
    linkTo(["events", event], { ...query, delivery, attempt });
  const way = (delivery: Delivery) => {
    const { rowid, status } = delivery;
    const isOpen = open === String(rowid);
    return (
      <li key={rowid}>
        <a class="way" href={linkOf(isOpen ? NONE : rowid)} aria-expanded={isOpen}>
          <Icon name="open" />
          <Status state={status} />
          <span class="name">
            <SubscriptionName of={delivery} />
          </span>
          <span class="end">
            <End delivery={delivery} />
          </span>
        </a>
        {isOpen && (
          <Way
            id={rowid}
            picked={Number(query["attempt"] ?? 0)}
            linkOf={(attempt) => linkOf(rowid, attempt)}
          />
        )}
      </li>
    );
  };
  return (
    <Section title="Deliveries" note={all !== undefined && countsText(all)}>
      <Loaded of={list} rows={2}>
        {(deliveries) =>
          deliveries.length === 0 ? (
            <div class="empty">No active subscription had this action when it was published.</div>
          ) : (
            <>
              <ul class="ways">
                {deliveries
                  .filter(({ rowid }, index) => index < MOST_SHOWN || open === String(rowid))
                  .map(way)}
              </ul>
              {deliveries.length > MOST_SHOWN && (
                <div class="more">
                  {numberText(MOST_SHOWN)} of {numberText(deliveries.length)}
                  <Button look="bare" to={linkTo(["deliveries"], { event })} label="All of them" />
                </div>
              )}
            </>
          )
        }
      </Loaded>
    </Section>
  );
}

/** `2 delivered, 1 waiting` */
function countsText(deliveries: readonly Delivery[]): string {
  return DELIVERY_STATUSES.flatMap((state) => {
    const count = deliveries.filter(({ status }) => status === state).length;
    return count === 0 ? [] : [`${numberText(count)} ${state}`];
  }).join(", ");
}

function End({ delivery }: { readonly delivery: Delivery }) {
  const { status, attempt, next_attempt_at: next, last_error: error, finished_at: end } = delivery;
  if (status === "waiting" && next !== null) {
    return (
      <>
        attempt {attempt + 1} <Until at={next} />
      </>
    );
  }
  if (status === "delivered" && end !== null) {
    const tookMs = Date.parse(end) - Date.parse(delivery.timestamped);
    return (
      <>
        attempt {attempt}, after {durationText(tookMs)}
      </>
    );
  }
  return <>{error ?? (attempt === 0 ? "" : `attempt ${attempt}`)}</>;
}

/** The attempts of one delivery, read while they are shown. */
function Way(props: {
  readonly id: number;
  readonly picked: number;
  readonly linkOf: (attempt: number) => string;
}) {
  const { id, picked, linkOf } = props;
  const read = useResource<DeliveryWithAttempts>(`/v1/deliveries/${id}`, { everyMs: EVERY_MS });
  const delivery = read.answer?.data;
  const subscriptionId = delivery?.subscription_id;
  const subscription = useResource<Subscription>(
    subscriptionId === undefined ? undefined : `/v1/subscriptions/${subscriptionId}`,
  ).answer?.data;
  if (delivery === undefined) return <Waiting of={read} rows={2} />;
  return (
    <>
      <Attempts delivery={delivery} subscription={subscription} picked={picked} linkOf={linkOf} />
      <div class="way-acts">
        <DeliveryActs delivery={delivery} subscription={subscription} />
        <span class="push">
          <a href={linkTo(["deliveries", id])}>Delivery {id}</a>
        </span>
      </div>
    </>
  );
}
