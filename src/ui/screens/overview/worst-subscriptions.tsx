import { NONE } from "../../parts/layout.tsx";
import { SUBSCRIPTION_STATES, type SubscriptionState } from "../../../domain/words/attention.ts";
import type { StatsRange, SubscriptionFigures } from "../../../domain/stats/stats.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { SubscriptionName } from "../../records/delivery-acts.tsx";
import { LastError, Success } from "../../records/subscription-figures.tsx";
import { failedShare } from "../../parts/texts.ts";
import { Empty, FIRST_SUBSCRIPTION } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { useStill } from "../../parts/still.ts";
import { stateNow } from "../../records/subscription-state.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText, numberText, useNow } from "../../parts/time.tsx";
import { linkTo } from "../../parts/route.ts";
import { RANGES } from "./figures.ts";

const SHOWN = 12;

interface Row extends SubscriptionFigures {
  readonly state: SubscriptionState;
}

const COLUMNS: readonly Column<Row>[] = [
  { head: "Subscription", grow: true, cell: (row) => <SubscriptionName of={row} /> },
  { head: "State", cell: ({ state }) => <Status state={state} /> },
  { head: "Action", wide: true, cell: ({ action }) => <code class="cut-text">{action}</code> },
  { head: "Delivered", right: true, wide: true, cell: ({ delivered }) => numberText(delivered) },
  { head: "Success", right: true, cell: (row) => <Success of={row} /> },
  { head: "p50", right: true, wide: true, cell: ({ attempt_ms: { p50 } }) => timeText(p50) },
  { head: "p95", right: true, wide: true, cell: ({ attempt_ms: { p95 } }) => timeText(p95) },
  { head: "Last error", wide: true, cell: (row) => <LastError of={row} /> },
  {
    head: "Failed for good",
    right: true,
    wide: true,
    cell: ({ failed }) => (failed === 0 ? NONE : <span class="danger-text">{numberText(failed)}</span>),
  },
];

const timeText = (ms: number | null) => (ms === null ? NONE : durationText(ms));

/** The worst first: by state, then by the share of attempts that failed, then the busiest. */
function worstFirst(one: Row, other: Row): number {
  return (
    SUBSCRIPTION_STATES.indexOf(one.state) - SUBSCRIPTION_STATES.indexOf(other.state) ||
    (failedShare(other) ?? -1) - (failedShare(one) ?? -1) ||
    other.delivered - one.delivered ||
    one.subscription_id - other.subscription_id
  );
}

/** How the subscriptions did in the range. */
export function WorstSubscriptions(props: {
  readonly figures: readonly SubscriptionFigures[];
  readonly subscriptions: readonly Subscription[];
  readonly range: StatsRange;
}) {
  const now = useNow();
  const byId = new Map(props.subscriptions.map((subscription) => [subscription.rowid, subscription]));
  const worst = props.figures
    .flatMap((figures) => {
      const subscription = byId.get(figures.subscription_id);
      return subscription === undefined ? [] : [{ ...figures, state: stateNow(subscription, now) }];
    })
    .toSorted(worstFirst)
    .slice(0, SHOWN);
  const { rows = [] } = useStill({
    list: props.range,
    rows: worst,
    keyOf: ({ subscription_id: id }) => id,
    place: ".worst",
  });
  return (
    <section aria-label="Subscriptions">
      <header>
        <h2>Subscriptions</h2>
        {rows.length > 0 && (
          <>
            <p>
              {numberText(props.subscriptions.length)}, the worst first; figures of the last{" "}
              {RANGES[props.range].words}
            </p>
            <a class="push" href={linkTo(["subscriptions"])}>
              All subscriptions
            </a>
          </>
        )}
      </header>
      <div class="panel worst">
        {rows.length === 0 ? (
          <Empty title="No subscription yet" command={FIRST_SUBSCRIPTION}>
            A subscription binds an action to the address that its events are sent to.
          </Empty>
        ) : (
          <Table
            label="Subscriptions, the worst first"
            rows={rows}
            columns={COLUMNS}
            keyOf={({ subscription_id: id }) => id}
            link={({ subscription_id: id }) => linkTo(["subscriptions", id])}
          />
        )}
      </div>
    </section>
  );
}
