import type { Delivery } from "../../../domain/delivery.ts";
import { useResource } from "../../api/resource.ts";
import { Copy, quoted } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Failed, Waiting } from "../../parts/states.tsx";
import { readEvent, type ShownEvent } from "../../parts/stored-event.ts";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { linkTo } from "../../shell/route.ts";

const DELIVERIES_EVERY_MS = 2_000;

/** One event: where it went, and what was published. */
export function EventDetail({
  id,
  query,
}: {
  readonly id: string;
  readonly query: Readonly<Record<string, string>>;
}) {
  const path = `/v1/events/${encodeURIComponent(id)}`;
  const event = useResource<ShownEvent>(path, { read: readEvent });
  const deliveries = useResource<readonly Delivery[]>(`${path}/deliveries`, { everyMs: DELIVERIES_EVERY_MS });
  const back = (
    <a class="back btn bare" href={linkTo(["events"], query)}>
      All events
    </a>
  );
  if (event.answer === undefined) {
    return (
      <article class="detail">
        {back}
        <Waiting error={event.error} reload={event.reload} />
      </article>
    );
  }
  const { rowid, action, revision, timestamped, payload } = event.answer.data;
  const command = `evreg publish ${quoted(action)} --payload ${quoted(payload)}`;
  return (
    <article class="detail" aria-label={`Event ${rowid}`}>
      {back}
      <header class="head">
        <div class="what">
          <h2 class="h1">
            <a href={linkTo(["actions", action])}>{action}</a>
          </h2>
          <p class="facts">
            <span>
              <b>Event</b> {rowid}
            </span>
            <span>
              <b>Published</b> <Time at={timestamped} exact />
            </span>
            <span>
              <b>Revision</b> {revision}
            </span>
          </p>
        </div>
        <div class="acts">
          <Copy text={command} what="the command that publishes it again" label="Copy as command" />
        </div>
      </header>
      <section>
        <header>
          <h2>Deliveries</h2>
        </header>
        <div class="panel">
          {deliveries.answer === undefined ? (
            <Waiting error={deliveries.error} reload={deliveries.reload} rows={2} />
          ) : deliveries.answer.data.length === 0 ? (
            <div class="empty">No subscription had this action when it was published.</div>
          ) : (
            <ul class="ways">
              {deliveries.answer.data.map((delivery) => (
                <li key={delivery.rowid}>
                  <a class="way" href={linkTo(["deliveries", delivery.rowid])}>
                    <Status state={delivery.status} />
                    <span class="name">
                      {delivery.application}/{delivery.subscription}
                    </span>
                    <span class="end">{delivery.last_error ?? `attempt ${delivery.attempt}`}</span>
                  </a>
                </li>
              ))}
            </ul>
          )}
        </div>
        {deliveries.error !== undefined && deliveries.answer !== undefined && (
          <Failed error={deliveries.error} />
        )}
      </section>
      <JsonView title="Payload" what="the payload" text={payload} />
    </article>
  );
}
