import type { DeliveryWithAttempts } from "../../../domain/delivery.ts";
import type { Health } from "../../../domain/operations.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { useResource } from "../../api/resource.ts";
import { Copy, quoted } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { LargePayload, Waiting } from "../../parts/states.tsx";
import { type EventHead, useEvent } from "../../parts/stored-event.ts";

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
function bodyOf({ rowid, action, timestamped }: EventHead, payload: string, attempt: number): string {
  return `{"event_id":"${rowid}","action":${JSON.stringify(action)},"payload":${payload},"timestamp":"${timestamped}","delivery_attempt":${attempt}}`;
}

function curlOf(url: string, headers: readonly Header[], body: string): string {
  const sent = headers.filter(([, , isLeftOut]) => isLeftOut !== true);
  const lines = sent.map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`);
  return [`curl -X POST ${quoted(url)}`, ...lines, `  --data-binary ${quoted(body)}`].join(" \\\n");
}

/** The request of an attempt, made again from what is stored. */
export function RequestView(props: {
  readonly delivery: DeliveryWithAttempts;
  readonly subscription: Subscription | undefined;
  readonly attempt: number;
}) {
  const { delivery, subscription, attempt } = props;
  const { head, payload, isLarge, ask } = useEvent(delivery.event_id);
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
  const started = delivery.attempts.find((one) => one.attempt === attempt)?.started_at;
  const at = { number: attempt, atMs: started === undefined ? Date.now() : Date.parse(started) };
  const headers = headersOf(delivery, subscription, at, health.answer?.data.version ?? "");
  const body =
    head.answer === undefined || payload.answer === undefined
      ? undefined
      : bodyOf(head.answer.data, payload.answer.data, attempt);
  return (
    <>
      <section class="panel codebox" aria-label="Request">
        <header>
          <h2>Request</h2>
          <span class="aside">of attempt {attempt}, made again</span>
          {body !== undefined && (
            <span class="push">
              <Copy
                text={() => curlOf(handler, headers, body)}
                what="the request as curl"
                label="Copy as curl"
              />
            </span>
          )}
        </header>
        <div class="request">
          <code class="break">
            <b>POST</b> {handler}
          </code>
          <dl>
            {headers.map(([name, value, isLeftOut]) => (
              <div key={name}>
                <dt>
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
      </section>
      {body !== undefined ? (
        <JsonView title="Body" what="the body" text={body} asked={isLarge} />
      ) : ask !== undefined ? (
        <LargePayload title="Body" bytes={head.answer?.data.payload_bytes ?? 0} show={ask} />
      ) : (
        <Waiting
          error={head.error ?? payload.error}
          reload={() => {
            head.reload();
            payload.reload();
          }}
          rows={4}
        />
      )}
    </>
  );
}
