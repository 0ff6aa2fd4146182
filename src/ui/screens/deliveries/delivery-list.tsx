import { useEffect, useState } from "preact/hooks";
import { type Delivery, DELIVERY_STATUSES } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { may } from "../../api/identity.ts";
import { withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { SubscriptionName } from "../../parts/delivery-acts.tsx";
import { FilterField, type FilterName } from "../../parts/filter-field.tsx";
import { Newer, Pages } from "../../parts/pages.tsx";
import { Empty, Failed, NoMatch, Waiting } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { isScrolled, useStill } from "../../parts/still.ts";
import { subscriptionFilter, subscriptionsNamed, useTimeRange } from "../../parts/list-filters.ts";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { Next } from "../../parts/waits-for.tsx";
import { linkTo, type Route } from "../../shell/route.ts";
import { CAUSES } from "../overview/backlog.tsx";
import { AllThatMatch, Picked } from "./many.tsx";

const PAGE_ROWS = 50;
const LIVE_EVERY_MS = 2_000;

function filtersFor(subscriptions: readonly Subscription[]): readonly FilterName[] {
  return [
    { name: "status", example: "failed", values: DELIVERY_STATUSES },
    { name: "cause", example: "waiting", values: CAUSES.map(({ cause }) => cause) },
    subscriptionFilter(subscriptions),
    { name: "action", example: "order.*" },
    { name: "event", example: "48213" },
    { name: "from", example: "1h" },
    { name: "to", example: "2026-02-01" },
    { name: "key", example: "C-17" },
  ];
}

/**
 * The newest deliveries, older pages, and what a filter finds.
 * @param props.read what the detail beside it has read last
 */
export function DeliveryList({
  route,
  selected,
  read,
}: {
  readonly route: Route;
  readonly selected: number | undefined;
  readonly read: Delivery | undefined;
}) {
  const { query } = route;
  const { status, cause, subscription: typed, action, event, key, after } = query;
  const [picked, setPicked] = useState<ReadonlySet<number>>(new Set());
  const subscriptions = useResource<readonly Subscription[]>("/v1/subscriptions");
  const named = subscriptionsNamed(typed, subscriptions.answer?.data);
  const { from, to } = useTimeRange(query);
  const isNewest = after === undefined && to === undefined;
  const selection = { status, cause, subscription: named.id, action, event, key, from, to };
  const path = named.isKnown
    ? withQuery("/v1/deliveries", { limit: PAGE_ROWS, ...selection, after })
    : undefined;
  const list = useResource<readonly Delivery[]>(path, isNewest ? { everyMs: LIVE_EVERY_MS } : {});
  const {
    rows: listed,
    waiting,
    showAll,
  } = useStill({
    list: path ?? "",
    rows: list.answer?.data,
    keyOf: ({ rowid }) => rowid,
    isRead: selected !== undefined || picked.size > 0 || isScrolled(),
  });
  const rows = listed?.map((row) => (row.rowid === selected && row.rowid === read?.rowid ? read : row));
  useEffect(() => setPicked(new Set()), [path]);
  const oldest = rows?.at(-1);
  const older = rows !== undefined && rows.length >= PAGE_ROWS ? oldest?.rowid : undefined;
  const filters = filtersFor(subscriptions.answer?.data ?? []);
  const isFiltered = filters.some(({ name }) => query[name] !== undefined);
  const chosen = rows?.filter(({ rowid }) => picked.has(rowid)) ?? [];
  const columns = columnsFor({
    isNarrow: selected !== undefined,
    picked,
    pick: (ids, on) => setPicked((before) => changed(before, ids, on)),
    rows: rows ?? [],
    byId: new Map(subscriptions.answer?.data.map((one) => [one.rowid, one])),
  });
  const { reload } = list;

  return (
    <section class="stack list" aria-label="Deliveries">
      <FilterField
        label="Filter deliveries"
        path={["deliveries"]}
        route={route}
        names={filters}
        plain="subscription"
      />
      {list.error !== undefined && rows !== undefined && <Failed error={list.error} reload={reload} />}
      <div class="panel">
        {chosen.length > 0 ? (
          <Picked
            deliveries={chosen}
            clear={() => setPicked(new Set())}
            done={() => {
              setPicked(new Set());
              reload();
            }}
          />
        ) : (
          status === "failed" &&
          rows !== undefined &&
          rows.length > 0 &&
          (event ?? key) === undefined && (
            <AllThatMatch
              selection={{ subscription: named.id, action, from, to }}
              subscriptions={subscriptions.answer?.data ?? []}
            />
          )
        )}
        <Newer waiting={waiting} read={list.answer?.data.length} what="delivery" show={showAll} />
        {named.reason !== undefined ? (
          <Empty
            title="No such subscription"
            button={
              <a class="btn" href={linkTo(["deliveries"], { ...query, subscription: undefined })}>
                Of all subscriptions
              </a>
            }
          >
            {named.reason}
          </Empty>
        ) : rows === undefined ? (
          <Waiting error={list.error ?? subscriptions.error} reload={reload} rows={12} />
        ) : rows.length === 0 ? (
          <NoDeliveries isFiltered={isFiltered} />
        ) : (
          <Table
            label="Deliveries"
            rows={rows}
            columns={columns}
            keyOf={({ rowid }) => rowid}
            link={({ rowid }) => linkTo(["deliveries", rowid], { ...query, attempt: undefined })}
            selected={selected}
          />
        )}
        <Pages
          shown={rows?.length ?? 0}
          oldest={oldest?.timestamped}
          newest={after === undefined ? undefined : linkTo(["deliveries"], { ...query, after: undefined })}
          older={older === undefined ? undefined : linkTo(["deliveries"], { ...query, after: older })}
        />
      </div>
    </section>
  );
}

function changed(before: ReadonlySet<number>, ids: readonly number[], on: boolean): ReadonlySet<number> {
  const after = new Set(before);
  for (const id of ids)
    if (on) after.add(id);
    else after.delete(id);
  return after;
}

function columnsFor(options: {
  readonly isNarrow: boolean;
  readonly picked: ReadonlySet<number>;
  readonly pick: (ids: readonly number[], on: boolean) => void;
  readonly rows: readonly Delivery[];
  readonly byId: ReadonlyMap<number, Subscription>;
}): readonly Column<Delivery>[] {
  const { isNarrow, picked, pick, rows, byId } = options;
  const mayPick = rows.some(({ application }) => may("write", application));
  const pickColumn: Column<Delivery> = {
    head: "Pick",
    wide: true,
    top: (
      <label class="tick">
        <input
          type="checkbox"
          aria-label="Pick all that are shown"
          checked={picked.size > 0 && picked.size === rows.length}
          onChange={(event) =>
            pick(
              rows.map(({ rowid }) => rowid),
              event.currentTarget.checked,
            )
          }
        />
      </label>
    ),
    cell: ({ rowid }) => (
      <label class="tick">
        <input
          type="checkbox"
          aria-label={`Pick delivery ${rowid}`}
          checked={picked.has(rowid)}
          onChange={(event) => pick([rowid], event.currentTarget.checked)}
        />
      </label>
    ),
  };
  const main: readonly Column<Delivery>[] = [
    { head: "State", cell: ({ status }) => <Status state={status} /> },
    { head: "Subscription", grow: true, cell: (row) => <SubscriptionName of={row} /> },
    { head: "Event", right: true, wide: true, cell: ({ event_id: event }) => event },
  ];
  const error: Column<Delivery> = {
    head: "Last error",
    wide: true,
    cell: ({ last_error: text }) =>
      text === null ? <span class="muted">–</span> : <code class="danger-text">{text}</code>,
  };
  const first = mayPick ? [pickColumn] : [];
  if (isNarrow) return [...first, ...main, error];
  return [
    ...first,
    { head: "Created", wide: true, cell: ({ timestamped }) => <Time at={timestamped} exact /> },
    ...main.slice(0, 2),
    { head: "Action", wide: true, cell: ({ action }) => <span class="cut-text">{action}</span> },
    ...main.slice(2),
    { head: "Attempts", right: true, wide: true, cell: ({ attempt }) => attempt },
    error,
    {
      head: "Next or end",
      cell: (delivery) =>
        delivery.finished_at === null ? (
          <Next delivery={delivery} subscription={byId.get(delivery.subscription_id)} />
        ) : (
          <Time at={delivery.finished_at} />
        ),
    },
  ];
}

function NoDeliveries({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <NoMatch what="delivery" screen="deliveries" />;
  return (
    <Empty title="No delivery yet" command="evreg subscriptions create --help">
      Each event that is published makes a delivery for each active subscription of its action.
    </Empty>
  );
}
