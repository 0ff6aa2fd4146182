import { useEffect, useState } from "preact/hooks";
import type { Delivery, DeliveryWithAttempts } from "../../../domain/delivery.ts";
import { DELIVERY_STATUSES } from "../../../model/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { may } from "../../api/identity.ts";
import { useResource } from "../../api/resource.ts";
import { Button } from "../../parts/button.tsx";
import type { FilterName } from "../../parts/filter-field.tsx";
import { NONE } from "../../parts/layout.tsx";
import { List, Split, useParts } from "../../parts/list.tsx";
import { linkTo, type Route } from "../../parts/route.ts";
import { Empty } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { SubscriptionName } from "../../records/delivery-acts.tsx";
import { subscriptionFilter, subscriptionsNamed, useTimeRange } from "../../records/list-filters.ts";
import { Next } from "../../records/waits-for.tsx";
import { CAUSES } from "../overview/backlog.tsx";
import { DeliveryDetail } from "./delivery-detail.tsx";
import { AllThatFailed, Picked } from "./many.tsx";

const EVERY_MS = 2_000;

/** All deliveries, or found ones, and beside them the one that was picked. */
export function Deliveries({ route }: { readonly route: Route }) {
  const id = route.path[1];
  const path = id === undefined ? undefined : `/v1/deliveries/${encodeURIComponent(id)}`;
  // Read once for both, so that the list says nothing else than the record beside it.
  const read = useResource<DeliveryWithAttempts>(path, { everyMs: EVERY_MS });
  return (
    <Split
      title="Deliveries"
      id={id}
      list={
        <DeliveryList
          route={route}
          selected={id === undefined ? undefined : Number(id)}
          read={read.answer?.data}
        />
      }
      detail={(one) => <DeliveryDetail key={one} id={one} of={read} query={route.query} />}
    />
  );
}

function filtersFor(subscriptions: readonly Subscription[]): readonly FilterName[] {
  return [
    { name: "status", example: "failed", values: DELIVERY_STATUSES },
    { name: "cause", example: "waiting", values: CAUSES.map(([cause]) => cause) },
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
 * @param props.read what was read last of the one that is selected
 */
function DeliveryList(props: {
  readonly route: Route;
  readonly selected: number | undefined;
  readonly read: Delivery | undefined;
}) {
  const { route, selected, read } = props;
  const { query } = route;
  const { status, cause, action, event, key, after } = query;
  const [picked, setPicked] = useState<ReadonlySet<number>>(new Set());
  const all = useResource<readonly Subscription[]>("/v1/subscriptions");
  const subscriptions = all.answer?.data;
  const named = subscriptionsNamed(query["subscription"], subscriptions);
  const { from, to } = useTimeRange(query);
  const selection = { status, cause, subscription: named.id, action, event, key, from, to };
  const list = useParts<Delivery>({
    what: "delivery",
    path: named.isKnown ? "/v1/deliveries" : undefined,
    query: selection,
    route,
    everyMs: EVERY_MS,
    isHeld: selected !== undefined || picked.size > 0,
  });
  const rows = list.rows?.map((row) => (row.rowid === selected && row.rowid === read?.rowid ? read : row));
  useEffect(() => setPicked(new Set()), [JSON.stringify({ ...selection, after })]);
  const chosen = rows?.filter(({ rowid }) => picked.has(rowid)) ?? [];
  const isOfFailed =
    status === "failed" && rows !== undefined && rows.length > 0 && (event ?? key ?? action) === undefined;
  return (
    <List
      title="Deliveries"
      what="delivery"
      route={route}
      filters={filtersFor(subscriptions ?? [])}
      plain="subscription"
      of={{ ...list, rows, error: list.error ?? (rows === undefined ? all.error : undefined) }}
      columns={columnsFor({
        isNarrow: selected !== undefined,
        picked,
        pick: (ids, on) => setPicked((before) => changed(before, ids, on)),
        rows: rows ?? [],
        byId: new Map(subscriptions?.map((one) => [one.rowid, one])),
      })}
      keyOf={({ rowid }) => rowid}
      link={({ rowid }) => linkTo(["deliveries", rowid], { ...query, attempt: undefined })}
      selected={selected}
      over={
        chosen.length > 0 ? (
          <Picked deliveries={chosen} clear={() => setPicked(new Set())} />
        ) : (
          isOfFailed && (
            <AllThatFailed
              subscription={subscriptions?.find(({ rowid }) => rowid === named.id)}
              from={from}
              to={to}
            />
          )
        )
      }
      instead={
        named.reason !== undefined && (
          <Empty
            title="No such subscription"
            button={
              <Button
                to={linkTo(["deliveries"], { ...query, subscription: undefined })}
                label="Of all subscriptions"
              />
            }
          >
            {named.reason}
          </Empty>
        )
      }
      empty={
        <Empty title="No delivery yet" command="evreg subscriptions create --help">
          Each event that is published makes a delivery for each active subscription of its action.
        </Empty>
      }
    />
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
    cell: ({ last_error: text }) => (text === null ? NONE : <code class="danger-text">{text}</code>),
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
