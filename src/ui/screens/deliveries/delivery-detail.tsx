import type { Delivery, DeliveryWithAttempts } from "../../../domain/delivery.ts";
import { shellWord } from "../../../domain/formats.ts";
import type { Health } from "../../../domain/operations.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { type Query, type Resource, useResource } from "../../api/resource.ts";
import { Copy, CopyCommand, curlOf } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { CodeBox, Head, Section } from "../../parts/layout.tsx";
import { linkTo } from "../../parts/route.ts";
import { Detail, Failed, MEANING, Say, Status, Waiting } from "../../parts/states.tsx";
import { countText, Time, useNow } from "../../parts/values.tsx";
import { Attempts } from "../../records/attempts.tsx";
import { DeliveryActs, type DeliveryProps, waitsFor } from "../../records/delivery.tsx";
import { eventPath, type ReadEvent, readEvent } from "../../records/exact-record.ts";
import { SubscriptionLink } from "../../records/subscription.tsx";

const EVERY_MS = 4_000;

/** One delivery: its attempts, the answers, and the request. */
export function DeliveryDetail(props: {
  readonly id: string;
  readonly source: Resource<DeliveryWithAttempts>;
  readonly query: Query;
}) {
  const { id, source, query } = props;
  const subscriber = source.answer?.data.subscription_id;
  const subscription = useResource<Subscription>(
    subscriber === undefined ? undefined : `/v1/subscriptions/${subscriber}`,
    { everyMs: EVERY_MS },
  ).answer?.data;
  const now = useNow();
  const picked = Number(query["attempt"] ?? 0);
  const list = linkTo(["deliveries"], { ...query, attempt: undefined });
  return (
    <Detail source={source} label={`Delivery ${id}`} back={["All deliveries", list]}>
      {(delivery) => (
        <>
          <Head
            isRecord
            title={<SubscriptionLink record={delivery} />}
            badge={<Status state={delivery.status} badge />}
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
          <Failed error={source.error} />
          {subscription?.blocked_by === delivery.rowid && (
            <Say state="blocked" title="It blocks the deliveries behind it">
              It has used up its retries and is tried on. <SubscriptionLink record={delivery} /> is ordered:
              the others
              {typeof subscription.ordered === "object" && " of its key"} wait until it is delivered or given
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

type Header = readonly [name: string, value: string, isLeftOut?: boolean];

const LEFT_OUT = "…";

/** The headers of an attempt as they are sent, in their order, without what is a secret or made of one. */
function headersOf(
  { event_id: event, subscription_id: id, action }: DeliveryWithAttempts,
  { bearer, headers }: Subscription,
  attempt: { readonly number: number; readonly atMs: number },
  version: string,
): readonly Header[] {
  return [
    ["Content-Type", "application/json"],
    ["User-Agent", `evreg/${version}`],
    ["X-Evreg-Event", action],
    ["X-Evreg-Delivery", `${event}_${attempt.number}`],
    ["X-Evreg-Signature", `sha256=${LEFT_OUT}`, true],
    ["webhook-id", `evt_${event}_${id}`],
    ["webhook-timestamp", String(Math.floor(attempt.atMs / 1_000))],
    ["webhook-signature", `v1,${LEFT_OUT}`, true],
    ...(bearer === "none" ? [] : [["Authorization", `Bearer ${LEFT_OUT}`, true] as const]),
    ...Object.entries(headers ?? {}),
  ];
}

/** The body of an attempt, with the payload byte for byte. */
function bodyOf({ rowid, action, timestamped, exactText: payload }: ReadEvent, attempt: number): string {
  return `{"event_id":"${rowid}","action":${JSON.stringify(action)},"payload":${payload},"timestamp":"${timestamped}","delivery_attempt":${attempt}}`;
}

/**
 * The request of an attempt, made again from what is stored.
 * @param props.picked the attempt; the last one, where it is not kept
 */
function RequestView(props: DeliveryProps<DeliveryWithAttempts> & { readonly picked: number }) {
  const { delivery, subscription, picked } = props;
  const { attempts } = delivery;
  const stored = useResource<ReadEvent>(eventPath(delivery.event_id), { read: readEvent, isFixed: true });
  const health = useResource<Health>("/health");
  if (subscription === undefined || subscription.handler === null) {
    return (
      <p class="soft">
        {subscription === undefined
          ? "Its subscription is gone, or this token may not read it: so what it was sent to is not known."
          : "Its subscription has no handler: a consumer claims it, with the same body and signature."}
      </p>
    );
  }
  const { handler } = subscription;
  const kept = attempts.find(({ attempt }) => attempt === picked) ?? attempts.at(-1);
  const number = kept?.attempt ?? Math.max(1, delivery.attempt);
  const at = { number, atMs: kept === undefined ? Date.now() : Date.parse(kept.started_at) };
  const headers = headersOf(delivery, subscription, at, health.answer?.data.version ?? "");
  const sent = headers.flatMap(([name, value, isLeftOut]) =>
    isLeftOut === true ? [] : [shellWord(`${name}: ${value}`)],
  );
  const event = stored.answer?.data;
  const body = event === undefined ? undefined : bodyOf(event, number);
  return (
    <>
      <CodeBox
        title="Request"
        note={<>of attempt {number}, made again</>}
        aside={
          body !== undefined && (
            <Copy
              text={() => curlOf("POST", handler, sent, body)}
              what="the request as curl"
              label="Copy as curl"
            />
          )
        }
      >
        <div class="request">
          <code class="break">
            <b>POST</b> {handler}
          </code>
          <dl>
            {headers.map(([name, value, isLeftOut]) => (
              <div key={name}>
                <dt class="soft">
                  <code>{name}</code>
                </dt>
                <dd class={isLeftOut === true ? "muted" : ""}>
                  <code class="break">{value}</code>
                </dd>
              </div>
            ))}
          </dl>
          <p class="muted">
            It is made again from the event and from the subscription as it is now: if its handler or headers
            were changed since, this attempt went elsewhere or had others.
          </p>
          <p class="muted">
            The signatures{subscription.bearer === "none" ? "" : " and the bearer"} are left out. A handler
            that checks them refuses the curl line.
          </p>
        </div>
      </CodeBox>
      {body === undefined ? (
        <Waiting source={stored} />
      ) : (
        <JsonView title="Body" what="the body" text={body} />
      )}
    </>
  );
}
