import { useMemo } from "preact/hooks";
import type { Event } from "../../../domain/event.ts";
import { Button } from "../../parts/layout.tsx";
import { type FilterName, List, Split, useParts, useTimeRange } from "../../parts/list.tsx";
import { linkTo, type Route } from "../../parts/route.ts";
import { Counts, Empty } from "../../parts/states.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/values.tsx";
import { EventDetail } from "./event-detail.tsx";
import { whereSchema } from "./where.ts";

/** Its payload is read where it is looked at. */
type ListedEvent = Omit<Event, "payload">;

const FILTERS: readonly FilterName[] = [
  { name: "action", example: "order.*" },
  { name: "from", example: "1h" },
  { name: "to", example: "2026-02-01" },
  { name: "idempotency_key", example: "order-4711-created" },
  {
    name: "where",
    example: "customer.country=FR",
    hint: "Payloads with this member, also as /customer/country=FR",
    bare: /^\{|^[^\s=]+=/,
  },
];
const LIVE_EVERY_MS = 1_000;

const COLUMNS: readonly Column<ListedEvent>[] = [
  { head: "Published", cell: ({ timestamped }) => <Time at={timestamped} exact /> },
  { head: "Action", grow: true, cell: ({ action }) => action },
  { head: "Event", right: true, wide: true, cell: ({ rowid }) => rowid },
  { head: "Deliveries", cell: ({ deliveries }) => <Counts counts={deliveries ?? {}} /> },
];

/** The newest events, older pages, and what a search finds. */
function EventList({ route }: { readonly route: Route }) {
  const { query } = route;
  const { action, where, idempotency_key } = query;
  const { from, to } = useTimeRange(query);
  const { schema, wrong } = useMemo(() => (where === undefined ? {} : whereSchema(where)), [where]);
  const list = useParts<ListedEvent>({
    what: "event",
    path: wrong === undefined ? "/v1/events" : undefined,
    query: { payloads: false, deliveries: true, action, from, to, idempotency_key, where: schema },
    route,
    everyMs: LIVE_EVERY_MS,
    isSearch: where !== undefined,
  });
  return (
    <List
      filters={FILTERS}
      plain="action"
      source={wrong === undefined ? list : { ...list, newer: undefined, foot: null }}
      columns={COLUMNS}
      keyOf={({ rowid }) => rowid}
      link={({ rowid }) => linkTo(["events", rowid], { ...query, delivery: undefined, attempt: undefined })}
      instead={
        wrong !== undefined && (
          <Empty
            title="This is no search"
            button={<Button to={linkTo(["events"], { ...query, where: undefined })} label="Search anew" />}
          >
            {wrong}
          </Empty>
        )
      }
      noMatch={<NoMatchingEvents hasMore={list.hasMore === true} action={action} />}
      empty={
        <Empty title="No event yet" command={`evreg publish user.created '{"id":1}'`}>
          An event is published to an action, and goes to each subscription of it.
        </Empty>
      }
    />
  );
}

function NoMatchingEvents(props: { readonly hasMore: boolean; readonly action: string | undefined }) {
  const { hasMore, action } = props;
  return (
    <Empty
      title={hasMore ? "No event matches so far" : "No event matches"}
      button={<Button to="#/events" label="Clear the filter" />}
    >
      {hasMore ? "Older events have not been looked at yet." : "No stored event has all of these."}
      {action !== undefined && (
        <>
          {" "}
          <code>{action}</code> is looked for as the name of an action. To look into payloads, type{" "}
          <code>where MEMBER=VALUE</code>, such as <code>where customer.country=FR</code>.
        </>
      )}
    </Empty>
  );
}

/** All events, or found ones, and beside them the one that was picked. */
export function Events({ route }: { readonly route: Route }) {
  return (
    <Split
      title="Events"
      route={route}
      list={<EventList route={route} />}
      detail={(id) => <EventDetail id={id} query={route.query} />}
    />
  );
}
