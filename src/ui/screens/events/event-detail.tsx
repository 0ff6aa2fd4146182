import { useRef, useState } from "preact/hooks";
import { newAttemptKey } from "../../api/attempt-key.ts";
import type { Action } from "../../../domain/action.ts";
import type { Event } from "../../../domain/event.ts";
import { may } from "../../api/identity.ts";
import { apiUrl, askJson } from "../../api/request.ts";
import { noted, useResource } from "../../api/resource.ts";
import { readSession } from "../../api/session-token.ts";
import { Copy, quoted, runnable } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { LargePayload, Waiting } from "../../parts/states.tsx";
import { type EventHead, payloadOf, useEvent } from "../../parts/stored-event.ts";
import { Time } from "../../parts/time.tsx";
import { confirm } from "../../shell/confirm.tsx";
import { goTo, linkTo } from "../../shell/route.ts";
import { say, sayError } from "../../shell/toast.tsx";
import { EventDeliveries } from "./event-deliveries.tsx";

/** One event: where it went, and what was published. */
export function EventDetail({
  id,
  query,
}: {
  readonly id: string;
  readonly query: Readonly<Record<string, string>>;
}) {
  const { head, payload, isLarge, ask } = useEvent(id);
  const event = head.answer?.data;
  const action = useResource<Action>(
    event === undefined ? undefined : `/v1/actions/${encodeURIComponent(event.action)}`,
  ).answer?.data;
  const back = (
    <a class="back btn bare" href={linkTo(["events"], { ...query, delivery: undefined, attempt: undefined })}>
      All events
    </a>
  );
  if (event === undefined) {
    return (
      <article class="detail">
        {back}
        <Waiting error={head.error} reload={head.reload} />
      </article>
    );
  }
  return (
    <article class="detail" aria-label={`Event ${event.rowid}`}>
      {back}
      <header class="head">
        <div class="what">
          <h2 class="h1">
            <a href={linkTo(["actions", event.action])}>{event.action}</a>
          </h2>
          <p class="facts">
            <span>
              <b>Event</b> {event.rowid}
            </span>
            <span>
              <b>Published</b> <Time at={event.timestamped} exact />
            </span>
            <span>
              <b>Revision</b> {event.revision}
            </span>
            {action !== undefined && (
              <span>
                <b>Application</b> {action.application}
              </span>
            )}
          </p>
        </div>
        <Acts event={event} application={action?.application} payload={payload.answer?.data} />
      </header>
      <EventDeliveries event={event.rowid} query={query} />
      {payload.answer !== undefined ? (
        <JsonView title="Payload" what="the payload" text={payload.answer.data} asked={isLarge} />
      ) : ask !== undefined ? (
        <LargePayload title="Payload" bytes={event.payload_bytes} show={ask} />
      ) : (
        <Waiting error={payload.error} reload={payload.reload} />
      )}
    </article>
  );
}

/** @param props.payload `undefined` while it is not read: then it is read when it is needed */
function Acts(props: {
  readonly event: EventHead;
  readonly application: string | undefined;
  readonly payload: string | undefined;
}) {
  const { event, application } = props;
  const { rowid, action } = event;
  const [isBusy, setBusy] = useState(false);
  const key = useRef(newAttemptKey());
  const readIt = async (): Promise<string> => props.payload ?? payloadOf(rowid);
  const body = async (more = ""): Promise<string> =>
    `{"action":${JSON.stringify(action)},${more}"payload":${await readIt()}}`;
  const again = async (): Promise<void> => {
    const yes = await confirm({
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
    if (!yes) return;
    setBusy(true);
    try {
      const text = await body(`"idempotency_key":"${key.current}",`);
      const { data } = await askJson<Event>("/v1/events", { method: "POST", text });
      key.current = newAttemptKey();
      say(`Published as event ${data.rowid}.`);
      goTo(linkTo(["events", data.rowid]));
    } catch (error) {
      sayError(noted(error));
    } finally {
      setBusy(false);
    }
  };
  const isOwn = action.startsWith("evreg.");
  return (
    <div class="acts">
      {!isOwn && may("publish", application) && (
        <button class="btn" disabled={isBusy} onClick={() => void again()}>
          Publish again…
        </button>
      )}
      <Copy
        text={async () => curlOf(await body())}
        what="the request that publishes it, as curl"
        label="Copy as curl"
      />
      <Copy
        text={async () => runnable(`evreg publish ${quoted(action)} ${quoted(await readIt())}`)}
        what="the command that publishes it"
        label="Copy as command"
      />
    </div>
  );
}

/** The token is taken from the environment of whoever runs it. */
function curlOf(body: string): string {
  const token = readSession() === null ? [] : [`-H "Authorization: Bearer $EVREG_TOKEN"`];
  const parts = [
    `curl -X POST ${quoted(apiUrl("/v1/events"))}`,
    ...token,
    `-H 'Content-Type: application/json'`,
    `--data-binary ${quoted(body)}`,
  ];
  return parts.join(" \\\n  ");
}
