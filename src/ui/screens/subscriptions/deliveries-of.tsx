import { Button, Segments } from "../../parts/button.tsx";
import { type Delivery, type DeliveryStatus, isFinal } from "../../../domain/delivery.ts";
import { DELIVERY_STATUSES } from "../../../model/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { askJson, type Envelope, withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { Command } from "../../parts/copy.tsx";
import { Section } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText, Time } from "../../parts/time.tsx";
import { Next } from "../../records/waits-for.tsx";
import { goTo, linkTo, type Route } from "../../parts/route.ts";

const WORDS = { all: "All", unfinished: "Unfinished", failed: "Failed" } as const;
type Shown = keyof typeof WORDS;
const NOTHING: Readonly<Record<Shown, string>> = {
  all: "It has no delivery yet.",
  unfinished: "None waits: all are finished.",
  failed: "None has failed for good.",
};
const UNFINISHED = DELIVERY_STATUSES.filter((status) => !isFinal(status));
const ROWS = 12;
const EVERY_MS = 2_000;

const columnsOf = (subscription: Subscription): readonly Column<Delivery>[] => [
  { head: "State", cell: ({ status }) => <Status state={status} /> },
  {
    head: "Delivery",
    grow: true,
    cell: ({ rowid, last_error: error }) => (
      <>
        {rowid} {error !== null && <code class="sub">{error}</code>}
      </>
    ),
  },
  {
    head: "Event",
    right: true,
    wide: true,
    cell: ({ event_id: id }) => <a href={linkTo(["events", id])}>{id}</a>,
  },
  { head: "Created", wide: true, cell: ({ timestamped }) => <Time at={timestamped} /> },
  { head: "Attempts", right: true, wide: true, cell: ({ attempt }) => attempt },
  {
    head: "Next or took",
    right: true,
    cell: (delivery) => <NextOrTook delivery={delivery} subscription={subscription} />,
  },
];

function NextOrTook(props: { readonly delivery: Delivery; readonly subscription: Subscription }) {
  const { delivery, subscription } = props;
  const { finished_at: finished, status, timestamped } = delivery;
  if (status === "delivering") return <>now</>;
  if (status === "filtered") return <span class="muted">not sent</span>;
  if (finished !== null) return <>{durationText(Date.parse(finished) - Date.parse(timestamped))}</>;
  return <Next delivery={delivery} subscription={subscription} />;
}

/** The newest in each of some states, as one list: an answer has those of one state. */
async function inStates(
  subscription: number,
  statuses: readonly DeliveryStatus[],
  signal: AbortSignal,
): Promise<Envelope<readonly Delivery[]>> {
  const lists = await Promise.all(
    statuses.map((status) =>
      askJson<readonly Delivery[]>(withQuery("/v1/deliveries", { subscription, status, limit: ROWS }), {
        signal,
      }),
    ),
  );
  const data = lists.flatMap((list) => list.data).toSorted((one, other) => other.rowid - one.rowid);
  return { data: data.slice(0, ROWS) };
}

/** The newest deliveries of a subscription: all, those to come, or those that failed for good. */
export function DeliveriesOf(props: { readonly subscription: Subscription; readonly route: Route }) {
  const { subscription, route } = props;
  const { rowid: id } = subscription;
  const shown = (Object.keys(WORDS) as Shown[]).find((name) => name === route.query["deliveries"]) ?? "all";
  const status = shown === "failed" ? "failed" : undefined;
  const path = withQuery("/v1/deliveries", { subscription: id, limit: ROWS, status });
  const list = useResource<readonly Delivery[]>(shown === "unfinished" ? `${path}&unfinished` : path, {
    everyMs: EVERY_MS,
    read: (asked, signal) =>
      shown === "unfinished"
        ? inStates(id, UNFINISHED, signal)
        : askJson<readonly Delivery[]>(asked, { signal }),
  });
  return (
    <Section
      title="Deliveries"
      aside={
        <Segments
          look="push"
          label="Which deliveries"
          choices={WORDS}
          picked={shown}
          pick={(name) =>
            goTo(linkTo(route.path, { ...route.query, deliveries: name === "all" ? undefined : name }), {
              replace: true,
            })
          }
        />
      }
    >
      <Loaded of={list} rows={6}>
        {(rows) =>
          rows.length === 0 ? (
            <div class="empty">{NOTHING[shown]}</div>
          ) : (
            <>
              <Table
                label="Deliveries"
                rows={rows}
                columns={columnsOf(subscription)}
                keyOf={({ rowid }) => rowid}
                link={({ rowid }) => linkTo(["deliveries", rowid])}
              />
              <div class="more">
                <span>The newest {rows.length}</span>
                <Button
                  look="bare"
                  to={linkTo(["deliveries"], { subscription: id, status })}
                  label="All of them"
                />
              </div>
            </>
          )
        }
      </Loaded>
      <Command
        text={`evreg deliveries list --subscription ${id}${status === undefined ? "" : ` --status ${status}`}`}
      />
    </Section>
  );
}
