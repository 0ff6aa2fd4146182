import type { Delivery, DeliveryStatus } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { askJson, type Envelope, withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { Command } from "../../parts/copy.tsx";
import { Failed, Waiting } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText, Time } from "../../parts/time.tsx";
import { Next } from "../../parts/waits-for.tsx";
import { goTo, linkTo, type Route } from "../../shell/route.ts";

const SHOWN = ["all", "unfinished", "failed"] as const;
type Shown = (typeof SHOWN)[number];
const WORDS: Readonly<Record<Shown, string>> = { all: "All", unfinished: "Unfinished", failed: "Failed" };
const UNFINISHED: readonly DeliveryStatus[] = ["pending", "delivering", "waiting", "held"];
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
  const shown = SHOWN.find((name) => name === route.query["deliveries"]) ?? "all";
  const status = shown === "failed" ? "failed" : undefined;
  const path = withQuery("/v1/deliveries", { subscription: id, limit: ROWS, status });
  const list = useResource<readonly Delivery[]>(shown === "unfinished" ? `${path}&unfinished` : path, {
    everyMs: EVERY_MS,
    read: (asked, signal) =>
      shown === "unfinished"
        ? inStates(id, UNFINISHED, signal)
        : askJson<readonly Delivery[]>(asked, { signal }),
  });
  const rows = list.answer?.data;
  return (
    <section aria-label="Deliveries">
      <header>
        <h2>Deliveries</h2>
        <span class="seg push" role="group" aria-label="Which deliveries">
          {SHOWN.map((name) => (
            <button
              key={name}
              aria-pressed={name === shown}
              onClick={() =>
                goTo(linkTo(route.path, { ...route.query, deliveries: name === "all" ? undefined : name }), {
                  replace: true,
                })
              }
            >
              {WORDS[name]}
            </button>
          ))}
        </span>
      </header>
      <div class="panel">
        {rows === undefined ? (
          <Waiting error={list.error} reload={list.reload} rows={6} />
        ) : rows.length === 0 ? (
          <div class="empty">
            {shown === "all"
              ? "It has no delivery yet."
              : shown === "failed"
                ? "None has failed for good."
                : "None waits: all are finished."}
          </div>
        ) : (
          <Table
            label="Deliveries"
            rows={rows}
            columns={columnsOf(subscription)}
            keyOf={({ rowid }) => rowid}
            link={({ rowid }) => linkTo(["deliveries", rowid])}
          />
        )}
        {rows !== undefined && rows.length > 0 && (
          <div class="more">
            <span>The newest {rows.length}</span>
            <a class="btn bare" href={linkTo(["deliveries"], { subscription: id, status })}>
              All of them
            </a>
          </div>
        )}
      </div>
      {list.error !== undefined && rows !== undefined && <Failed error={list.error} />}
      <Command
        text={`evreg deliveries list --subscription ${id}${status === undefined ? "" : ` --status ${status}`}`}
      />
    </section>
  );
}
