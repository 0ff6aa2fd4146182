import { useRef } from "preact/hooks";
import type { Action } from "../../../domain/action.ts";
import type { Delivery, DeliveryWithAttempts } from "../../../domain/delivery.ts";
import type { Event } from "../../../domain/event.ts";
import { shellWord } from "../../../domain/formats.ts";
import { isReservedName } from "../../../domain/names.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { DELIVERY_STATUSES } from "../../../model/delivery.ts";
import { apiUrl, newAttemptKey, type Query, send, useResource } from "../../api/resource.ts";
import { may, readSession } from "../../api/session.ts";
import { say, sayError, useActing } from "../../parts/acting.ts";
import { Copy, curlOf, JSON_HEADER, runnable, TOKEN_HEADER } from "../../parts/copy.tsx";
import { Icon } from "../../parts/icons.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Button, Head, Section } from "../../parts/layout.tsx";
import { goTo, linkTo } from "../../parts/route.ts";
import { Detail, Loaded, Status, Waiting } from "../../parts/states.tsx";
import { durationText, numberText, Time, Until } from "../../parts/values.tsx";
import { Attempts } from "../../records/attempts.tsx";
import { DeliveryActs } from "../../records/delivery.tsx";
import { eventPath, type ReadEvent, readEvent } from "../../records/exact-record.ts";
import { SubscriptionName } from "../../records/subscription.tsx";

/** One event: where it went, and what was published. */
export function EventDetail({ id, query }: { readonly id: string; readonly query: Query }) {
  const stored = useResource<ReadEvent>(eventPath(id), { read: readEvent, isFixed: true });
  const name = stored.answer?.data.action;
  const action = useResource<Action>(
    name === undefined ? undefined : `/v1/actions/${encodeURIComponent(name)}`,
  ).answer?.data;
  const list = linkTo(["events"], { ...query, delivery: undefined, attempt: undefined });
  return (
    <Detail source={stored} label={`Event ${id}`} back={["All events", list]}>
      {(event) => (
        <>
          <Head
            isRecord
            title={<a href={linkTo(["actions", event.action])}>{event.action}</a>}
            facts={{
              Event: event.rowid,
              Published: <Time at={event.timestamped} exact />,
              Revision: event.revision,
              Application: action?.application,
            }}
            acts={<Acts event={event} application={action?.application} />}
          />
          <EventDeliveries event={event.rowid} query={query} />
          <JsonView title="Payload" what="the payload" text={event.exactText} />
        </>
      )}
    </Detail>
  );
}

function Acts(props: { readonly event: ReadEvent; readonly application: string | undefined }) {
  const { event, application } = props;
  const { rowid, action, exactText: payload } = event;
  const { isBusy, act } = useActing(sayError);
  const key = useRef(newAttemptKey());
  const body = (more = ""): string => `{"action":${JSON.stringify(action)},${more}"payload":${payload}}`;
  const publish = async (): Promise<void> => {
    const text = body(`"idempotency_key":"${key.current}",`);
    const { data } = await send<Event>("POST", "/v1/events", { text });
    key.current = newAttemptKey();
    say(`Published as event ${data.rowid}.`);
    goTo(linkTo(["events", data.rowid]));
  };
  const again = (): void =>
    act(publish, {
      title: `Publish event ${rowid} again?`,
      body: (
        <>
          <p>
            A new event of <strong class="strong">{action}</strong> with the same payload goes to each active
            subscription of it, also to those that have received this one.
          </p>
          <p>To send it to one subscription only, use “Send again” of its delivery.</p>
        </>
      ),
      act: "Publish it again",
    });
  return (
    <>
      {!isReservedName(action) && may("publish", application) && (
        <Button run={again} disabled={isBusy} label="Publish again…" />
      )}
      <Copy
        text={() => curlOfEvent(body())}
        what="the request that publishes it, as curl"
        label="Copy as curl"
      />
      <Copy
        text={() => runnable(`evreg publish ${shellWord(action)} ${shellWord(payload)}`)}
        what="the command that publishes it"
        label="Copy as command"
      />
    </>
  );
}

function curlOfEvent(body: string): string {
  const token = readSession() === null ? [] : [TOKEN_HEADER];
  return curlOf("POST", apiUrl("/v1/events"), [...token, JSON_HEADER], body);
}

const EVERY_MS = 2_000;
/** The address says so as `delivery` where none is open. */
const NONE = "none";
/** The others are in the list of deliveries. */
const MOST_SHOWN = 100;
const TROUBLE: ReadonlySet<string> = new Set(["failed", "waiting", "held"]);

/** Where an event went: a line for each subscription, and of one of them each attempt. */
function EventDeliveries({ event, query }: { readonly event: number; readonly query: Query }) {
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
            <SubscriptionName record={delivery} />
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
      <Loaded source={list} rows={2}>
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
  if (delivery === undefined) return <Waiting source={read} rows={2} />;
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
