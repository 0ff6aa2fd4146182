import { useMemo } from "preact/hooks";
import type { DeliveryCounts } from "../../../domain/delivery.ts";
import type { PageMeta } from "../../../domain/event.ts";
import { withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { FilterField, type FilterName } from "../../parts/filter-field.tsx";
import { Newer, Pages } from "../../parts/pages.tsx";
import { Empty, Failed, Waiting } from "../../parts/states.tsx";
import { isScrolled, useStill } from "../../parts/still.ts";
import { Counts } from "../../parts/status.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useTimeRange } from "../../parts/list-filters.ts";
import { linkTo, type Route } from "../../shell/route.ts";
import { whereSchema } from "./where.ts";

/** An event as a list shows it. Its payload is read where it is looked at. */
interface ListedEvent {
  readonly rowid: number;
  readonly action: string;
  readonly timestamped: string;
  readonly deliveries?: DeliveryCounts;
}

const FILTERS: readonly FilterName[] = [
  { name: "action", example: "order.*" },
  { name: "from", example: "1h" },
  { name: "to", example: "2026-02-01" },
  { name: "outcome", example: "failed", values: ["unreceived", "failed"] },
  { name: "key", example: "C-17" },
  { name: "idempotency_key", example: "order-4711-created" },
  {
    name: "where",
    example: "customer.country=FR",
    hint: "Payloads with this member, also as /customer/country=FR",
    bare: /^\{|^[^\s=]+=/,
  },
];
const PAGE_ROWS = 50;
const LIVE_EVERY_MS = 1_000;

const COLUMNS: readonly Column<ListedEvent>[] = [
  { head: "Published", cell: ({ timestamped }) => <Time at={timestamped} exact /> },
  { head: "Action", grow: true, cell: ({ action }) => action },
  { head: "Event", right: true, wide: true, cell: ({ rowid }) => rowid },
  { head: "Deliveries", cell: ({ deliveries }) => <Counts counts={deliveries ?? {}} /> },
];

/** The newest events, older pages, and what a search finds. */
export function EventList({
  route,
  selected,
}: {
  readonly route: Route;
  readonly selected: number | undefined;
}) {
  const { action, outcome, where, key, idempotency_key: used, after } = route.query;
  const { from, to } = useTimeRange(route.query);
  const wanted = useMemo(() => (where === undefined ? undefined : whereSchema(where)), [where]);
  const wrong = wanted !== undefined && "wrong" in wanted ? wanted.wrong : undefined;
  const schema = wanted !== undefined && "schema" in wanted ? wanted.schema : undefined;
  const isSearch = (outcome ?? where ?? key) !== undefined;
  const isNewest = after === undefined && !isSearch && to === undefined;
  const path = withQuery("/v1/events", {
    limit: PAGE_ROWS,
    payloads: false,
    deliveries: true,
    action,
    from,
    to,
    outcome,
    key,
    idempotency_key: used,
    where: schema,
    after,
  });
  const list = useResource<readonly ListedEvent[], PageMeta>(
    wrong === undefined ? path : undefined,
    isNewest ? { everyMs: LIVE_EVERY_MS } : {},
  );
  const { rows, waiting, showAll } = useStill({
    list: path,
    rows: list.answer?.data,
    keyOf: ({ rowid }) => rowid,
    isRead: selected !== undefined || isScrolled(),
  });
  const { next } = list.answer?.meta ?? {};
  const oldest = rows?.at(-1);
  const older = isSearch ? next : rows !== undefined && rows.length >= PAGE_ROWS ? oldest?.rowid : null;
  const isFiltered = FILTERS.some(({ name }) => route.query[name] !== undefined);

  return (
    <section class="stack list" aria-label="Events">
      <FilterField label="Filter events" path={["events"]} route={route} names={FILTERS} plain="action" />
      {list.error !== undefined && rows !== undefined && <Failed error={list.error} reload={list.reload} />}
      <div class="panel">
        <Newer waiting={waiting} read={list.answer?.data.length} what="event" show={showAll} />
        {wrong !== undefined ? (
          <Empty
            title="This is no search"
            button={
              <a class="btn" href={linkTo(["events"], { ...route.query, where: undefined })}>
                Search anew
              </a>
            }
          >
            {wrong}
          </Empty>
        ) : rows === undefined ? (
          <Waiting error={list.error} reload={list.reload} rows={12} />
        ) : rows.length === 0 ? (
          <NoEvents isFiltered={isFiltered} more={older ?? null} action={action} />
        ) : (
          <Table
            label="Events"
            rows={rows}
            columns={COLUMNS}
            keyOf={({ rowid }) => rowid}
            link={({ rowid }) =>
              linkTo(["events", rowid], { ...route.query, delivery: undefined, attempt: undefined })
            }
            selected={selected}
          />
        )}
        {wrong === undefined && (
          <Pages
            shown={rows?.length ?? 0}
            oldest={oldest?.timestamped}
            searched={list.answer?.meta?.searched}
            newest={
              after === undefined ? undefined : linkTo(["events"], { ...route.query, after: undefined })
            }
            older={
              older === null || older === undefined
                ? undefined
                : linkTo(["events"], { ...route.query, after: older })
            }
          />
        )}
      </div>
    </section>
  );
}

function NoEvents(props: {
  readonly isFiltered: boolean;
  readonly more: number | null;
  readonly action: string | undefined;
}) {
  const { isFiltered, more, action } = props;
  if (isFiltered) {
    return (
      <Empty
        title={more === null ? "No event matches" : "No event matches so far"}
        button={
          <a class="btn" href="#/events">
            Clear the filter
          </a>
        }
      >
        {more === null ? "No stored event has all of these." : "Older events have not been looked at yet."}
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
  return (
    <Empty title="No event yet" command={`evreg publish user.created '{"id":1}'`}>
      An event is published to an action, and goes to each subscription of it.
    </Empty>
  );
}
