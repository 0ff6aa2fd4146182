import { type Delivery, DELIVERY_STATUSES, type DeliveryWithAttempts } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { useResource } from "../../api/resource.ts";
import { Attempts } from "../../parts/attempts.tsx";
import { DeliveryActs, SubscriptionName } from "../../parts/delivery-acts.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Failed, Waiting } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { durationText, numberText, Until } from "../../parts/time.tsx";
import { linkTo } from "../../shell/route.ts";

const EVERY_MS = 2_000;
/** As `delivery` in the address: none is open. */
const NONE = "none";
/** The others are in the list of deliveries. */
const MOST_SHOWN = 100;
const TROUBLE: ReadonlySet<string> = new Set(["failed", "waiting", "held"]);

/** Where an event went: a line for each subscription, and of one of them each attempt. */
export function EventDeliveries({
  event,
  query,
}: {
  readonly event: number;
  readonly query: Readonly<Record<string, string>>;
}) {
  const path = `/v1/events/${event}/deliveries`;
  const { answer, error, reload } = useResource<readonly Delivery[]>(path, { everyMs: EVERY_MS });
  const deliveries = answer?.data;
  // Whoever looks at an event that did not arrive everywhere wants to know why.
  const open = query["delivery"] ?? String(deliveries?.find(({ status }) => TROUBLE.has(status))?.rowid);
  const linkOf = (delivery: number | string, attempt?: number): string =>
    linkTo(["events", event], { ...query, delivery, attempt });
  return (
    <section aria-label="Deliveries">
      <header>
        <h2>Deliveries</h2>
        {deliveries !== undefined && <p>{countsText(deliveries)}</p>}
      </header>
      <div class="panel">
        {deliveries === undefined ? (
          <Waiting error={error} reload={reload} rows={2} />
        ) : deliveries.length === 0 ? (
          <div class="empty">No active subscription had this action when it was published.</div>
        ) : (
          <ul class="ways">
            {deliveries.map((delivery, index) => {
              const isOpen = open === String(delivery.rowid);
              if (index >= MOST_SHOWN && !isOpen) return null;
              return (
                <li key={delivery.rowid}>
                  <a class="way" href={linkOf(isOpen ? NONE : delivery.rowid)} aria-expanded={isOpen}>
                    <Icon name="open" />
                    <Status state={delivery.status} />
                    <span class="name">
                      <SubscriptionName of={delivery} />
                    </span>
                    <span class="end">
                      <End delivery={delivery} />
                    </span>
                  </a>
                  {isOpen && (
                    <Way
                      id={delivery.rowid}
                      picked={Number(query["attempt"] ?? 0)}
                      linkOf={(attempt) => linkOf(delivery.rowid, attempt)}
                      done={reload}
                    />
                  )}
                </li>
              );
            })}
          </ul>
        )}
        {deliveries !== undefined && deliveries.length > MOST_SHOWN && (
          <div class="more">
            {numberText(MOST_SHOWN)} of {numberText(deliveries.length)}
            <a class="btn bare" href={linkTo(["deliveries"], { event })}>
              All of them
            </a>
          </div>
        )}
      </div>
      {error !== undefined && deliveries !== undefined && <Failed error={error} />}
    </section>
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
  readonly done: () => void;
}) {
  const { id, picked, linkOf, done } = props;
  const { answer, error, reload } = useResource<DeliveryWithAttempts>(`/v1/deliveries/${id}`, {
    everyMs: EVERY_MS,
  });
  const delivery = answer?.data;
  const of = delivery?.subscription_id;
  const subscription = useResource<Subscription>(of === undefined ? undefined : `/v1/subscriptions/${of}`)
    .answer?.data;
  if (delivery === undefined) return <Waiting error={error} reload={reload} rows={2} />;
  const isKept = delivery.attempts.some(({ attempt }) => attempt === picked);
  return (
    <>
      <Attempts
        delivery={delivery}
        subscription={subscription}
        picked={isKept ? picked : undefined}
        linkOf={linkOf}
      />
      <div class="way-acts">
        <DeliveryActs
          delivery={delivery}
          subscription={subscription}
          done={() => {
            reload();
            done();
          }}
        />
        <span class="push">
          <a href={linkTo(["deliveries", id])}>Delivery {id}</a>
        </span>
      </div>
    </>
  );
}
