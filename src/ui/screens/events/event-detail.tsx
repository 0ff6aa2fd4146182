import { useRef } from "preact/hooks";
import type { Action } from "../../../domain/action.ts";
import type { Event } from "../../../domain/event.ts";
import { shellWord } from "../../../domain/formats.ts";
import { isReservedName } from "../../../domain/names.ts";
import { may } from "../../api/identity.ts";
import { apiUrl, send, newAttemptKey, type Query } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { readSession } from "../../api/session-token.ts";
import { useActing } from "../../parts/acting.ts";
import { Button } from "../../parts/button.tsx";
import { Copy, curlOf, JSON_HEADER, runnable, TOKEN_HEADER } from "../../parts/copy.tsx";
import { Head } from "../../parts/layout.tsx";
import { goTo, linkTo } from "../../parts/route.ts";
import { Detail } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { say, sayError } from "../../parts/toast.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { eventPath, type ReadEvent, readEvent } from "../../records/exact-record.ts";
import { EventDeliveries } from "./event-deliveries.tsx";

/** One event: where it went, and what was published. */
export function EventDetail({ id, query }: { readonly id: string; readonly query: Query }) {
  const stored = useResource<ReadEvent>(eventPath(id), { read: readEvent, isFixed: true });
  const name = stored.answer?.data.action;
  const action = useResource<Action>(
    name === undefined ? undefined : `/v1/actions/${encodeURIComponent(name)}`,
  ).answer?.data;
  const list = linkTo(["events"], { ...query, delivery: undefined, attempt: undefined });
  return (
    <Detail of={stored} label={`Event ${id}`} back={["All events", list]}>
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
    void act(publish, {
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
