import { useEffect, useState } from "preact/hooks";
import type { Delivery, DeliveryWithAttempts } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { DELIVERY_STATUSES } from "../../../model/delivery.ts";
import { ApiError, askJson, changes, useResource } from "../../api/resource.ts";
import { may } from "../../api/session.ts";
import { say, sayError, useActing } from "../../parts/acting.ts";
import { Button, NONE } from "../../parts/layout.tsx";
import { type FilterName, List, Split, useParts, useTimeRange } from "../../parts/list.tsx";
import { linkTo, type Route } from "../../parts/route.ts";
import { Empty, Status } from "../../parts/states.tsx";
import type { Column } from "../../parts/table.tsx";
import { countText, numberText, Time } from "../../parts/values.tsx";
import { canRetry, canSkip } from "../../records/attempt-times.ts";
import { Next } from "../../records/delivery.tsx";
import { subscriptionFilter, SubscriptionName, subscriptionNamed } from "../../records/subscription.tsx";
import { CAUSES } from "../overview/figure-views.tsx";
import { DeliveryDetail } from "./delivery-detail.tsx";

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
      route={route}
      list={<DeliveryList route={route} read={read.answer?.data} />}
      detail={(one) => <DeliveryDetail id={one} source={read} query={route.query} />}
    />
  );
}

const FILTERS: readonly FilterName[] = [
  { name: "status", example: "failed", values: DELIVERY_STATUSES },
  { name: "cause", example: "waiting", values: CAUSES.map(([cause]) => cause) },
  { name: "action", example: "order.*" },
  { name: "event", example: "48213" },
  { name: "from", example: "1h" },
  { name: "to", example: "2026-02-01" },
  { name: "key", example: "C-17" },
];

/**
 * The newest deliveries, older pages, and what a filter finds.
 * @param props.read what was read last of the one that is looked at
 */
function DeliveryList({ route, read }: { readonly route: Route; readonly read: Delivery | undefined }) {
  const { query } = route;
  const { status, cause, action, event, key, after } = query;
  const [picked, setPicked] = useState<ReadonlySet<number>>(new Set());
  const all = useResource<readonly Subscription[]>("/v1/subscriptions");
  const subscriptions = all.answer?.data;
  const named = subscriptionNamed(route, subscriptions);
  const { from, to } = useTimeRange(query);
  const selection = { status, cause, subscription: named.id, action, event, key, from, to };
  const list = useParts<Delivery>({
    what: "delivery",
    path: named.isKnown ? "/v1/deliveries" : undefined,
    query: selection,
    route,
    everyMs: EVERY_MS,
    isHeld: picked.size > 0,
  });
  const rows = list.rows?.map((row) => (row.rowid === read?.rowid ? read : row));
  useEffect(() => setPicked(new Set()), [JSON.stringify({ ...selection, after })]);
  const chosen = rows?.filter(({ rowid }) => picked.has(rowid)) ?? [];
  const isOfFailed =
    status === "failed" && rows !== undefined && rows.length > 0 && (event ?? key ?? action) === undefined;
  return (
    <List
      filters={[subscriptionFilter(subscriptions), ...FILTERS]}
      plain="subscription"
      source={{ ...list, rows, error: list.error ?? (rows === undefined ? all.error : undefined) }}
      columns={columnsFor({
        rows: rows ?? [],
        picked,
        pick: setPicked,
        byId: new Map(subscriptions?.map((one) => [one.rowid, one])),
      })}
      keyOf={({ rowid }) => rowid}
      link={({ rowid }) => linkTo(["deliveries", rowid], { ...query, attempt: undefined })}
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
      instead={named.instead}
      empty={
        <Empty title="No delivery yet" command="evreg subscriptions create --help">
          Each event that is published makes a delivery for each active subscription of its action.
        </Empty>
      }
    />
  );
}

function columnsFor(options: {
  readonly rows: readonly Delivery[];
  readonly picked: ReadonlySet<number>;
  readonly pick: (picked: ReadonlySet<number>) => void;
  readonly byId: ReadonlyMap<number, Subscription>;
}): readonly Column<Delivery>[] {
  const { rows, picked, pick, byId } = options;
  const tick = (label: string, ids: readonly number[]) => {
    const isOn = ids.length > 0 && ids.every((id) => picked.has(id));
    const others = [...picked].filter((id) => !ids.includes(id));
    const change = (): void => pick(new Set(isOn ? others : [...others, ...ids]));
    return (
      <label class="tick">
        <input type="checkbox" aria-label={label} checked={isOn} onChange={change} />
      </label>
    );
  };
  const all = rows.map(({ rowid }) => rowid);
  const pickColumn: Column<Delivery> = {
    head: "Pick",
    wide: true,
    top: tick("Pick all that are shown", all),
    cell: ({ rowid }) => tick(`Pick delivery ${rowid}`, [rowid]),
  };
  return [
    ...(rows.some(({ application }) => may("write", application)) ? [pickColumn] : []),
    { head: "Created", wide: true, alone: true, cell: ({ timestamped }) => <Time at={timestamped} exact /> },
    { head: "State", cell: ({ status }) => <Status state={status} /> },
    { head: "Subscription", grow: true, cell: (row) => <SubscriptionName record={row} /> },
    {
      head: "Action",
      wide: true,
      alone: true,
      cell: ({ action }) => <span class="cut-text">{action}</span>,
    },
    { head: "Event", right: true, wide: true, cell: ({ event_id: event }) => event },
    { head: "Attempts", right: true, wide: true, alone: true, cell: ({ attempt }) => attempt },
    {
      head: "Last error",
      wide: true,
      cell: ({ last_error: text }) => (text === null ? NONE : <code class="danger-text">{text}</code>),
    },
    {
      head: "Next or end",
      alone: true,
      cell: (delivery) =>
        delivery.finished_at === null ? (
          <Next delivery={delivery} subscription={byId.get(delivery.subscription_id)} />
        ) : (
          <Time at={delivery.finished_at} />
        ),
    },
  ];
}

const deliveriesText = (count: number): string => countText(count, "delivery", "deliveries");

/** What can be done with the rows that were picked. */
function Picked(props: { readonly deliveries: readonly Delivery[]; readonly clear: () => void }) {
  const { deliveries, clear } = props;
  const [doneSoFar, setDoneSoFar] = useState<number | undefined>();
  const { act } = useActing(sayError);
  const mine = deliveries.filter(({ application }) => may("write", application));
  const toRetry = mine.filter(canRetry);
  const toSkip = mine.filter(canSkip);

  const each = async (ones: readonly Delivery[], verb: "retry" | "skip", what: string): Promise<void> => {
    const refused: string[] = [];
    try {
      for (const [index, { rowid }] of ones.entries()) {
        setDoneSoFar(index);
        await askJson(`/v1/deliveries/${rowid}/${verb}`, { method: "POST" }).catch((error: unknown) => {
          // Its state has changed meanwhile: the others are still to be done.
          if (!(error instanceof ApiError) || error.status !== 409) throw error;
          refused.push(`${rowid}: ${error.message}`);
        });
      }
    } finally {
      setDoneSoFar(undefined);
      changes.value += 1;
      clear();
    }
    if (refused.length === 0) say(`${deliveriesText(ones.length)} ${what}.`);
    else sayError(`${ones.length - refused.length} of ${ones.length} ${what}. ${refused[0]}`);
  };
  const leftOut = (taken: readonly Delivery[], why: string) => {
    const count = deliveries.length - taken.length;
    return (
      count > 0 && (
        <p>
          {countText(count, "of those picked is", "of those picked are")} left out: {why}.
        </p>
      )
    );
  };
  const again = toRetry.filter(({ status }) => status === "delivered").length;
  const retry = (): void =>
    act(() => each(toRetry, "retry", "sent again"), {
      title: `Send ${deliveriesText(toRetry.length)} again?`,
      body: (
        <>
          <p>They are sent now, with all their retries, before others of their subscriptions.</p>
          {again > 0 && <p>{numberText(again)} of them were delivered, and are received once more.</p>}
          {leftOut(toRetry, "under way, held or cancelled")}
        </>
      ),
      act: `Send ${numberText(toRetry.length)}`,
    });
  const skip = (): void =>
    act(() => each(toSkip, "skip", "given up"), {
      title: `Give up ${deliveriesText(toSkip.length)}?`,
      body: (
        <>
          <p>They then have failed. An ordered subscription goes on with the next one.</p>
          <p>They can be sent again later, then out of their order.</p>
          {leftOut(toSkip, "not failing, or have ended")}
        </>
      ),
      act: `Give up ${numberText(toSkip.length)}`,
      keep: "Keep trying",
      danger: true,
    });
  return (
    <div class="many" role="region" aria-label="Picked deliveries">
      <span role="status">
        {doneSoFar === undefined
          ? `${deliveriesText(deliveries.length)} picked`
          : `${numberText(doneSoFar)} of ${numberText(deliveries.length)} done`}
      </span>
      {doneSoFar === undefined && (
        <span class="row push">
          <Button run={retry} disabled={toRetry.length === 0} label="Send again…" />
          <Button run={skip} disabled={toSkip.length === 0} label="Give up…" />
          <Button look="bare" run={clear} label="Pick none" />
        </span>
      )}
    </div>
  );
}

const THE_BEGINNING = "1970-01-01T00:00:00Z";

/** Leads to a replay of all that have failed of a subscription, in the background. */
function AllThatFailed(props: {
  readonly subscription: Subscription | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
}) {
  const { subscription, from = THE_BEGINNING, to } = props;
  if (subscription === undefined) {
    return <div class="many">Filter by a subscription to send all again that have failed of it.</div>;
  }
  if (!may("write", subscription.application)) return null;
  const link = linkTo(["subscriptions", subscription.rowid, "replay"], { status: "failed", from, to });
  return (
    <div class="many">
      All that failed can be sent again in the background.
      <Button look="push" to={link} label="Send all again…" />
    </div>
  );
}
