import type { Finding } from "../../../domain/operations.ts";
import {
  type Stats,
  STATS_RANGE_NAMES,
  type StatsRange,
  type SubscriptionFigures,
} from "../../../domain/stats/stats.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { SUBSCRIPTION_STATES, type SubscriptionState } from "../../../domain/words/attention.ts";
import { useResource, withQuery } from "../../api/resource.ts";
import { may } from "../../api/session.ts";
import { NONE, Section, Segments } from "../../parts/layout.tsx";
import { choiceIn, linkTo, type Route } from "../../parts/route.ts";
import { Status, Waiting } from "../../parts/states.tsx";
import { useStill } from "../../parts/still.ts";
import { type Column, Table } from "../../parts/table.tsx";
import { countText, durationText, failedShare, numberText, useNow } from "../../parts/values.tsx";
import {
  LastError,
  NoSubscriptions,
  stateNow,
  SubscriptionName,
  Success,
} from "../../records/subscription.tsx";
import { Findings } from "../doctor/doctor.tsx";
import { Backlog, RateChart, StatStrip } from "./figure-views.tsx";
import { RANGES } from "./figures.ts";
import { Verdict } from "./verdict.tsx";

const EVERY_MS: Readonly<Record<StatsRange, number>> = {
  "5m": 2_000,
  "1h": 5_000,
  "24h": 30_000,
  "7d": 60_000,
};
/** All of the list comes each time. */
const SUBSCRIPTIONS_EVERY_MS = 10_000;
const MOST_ROWS = 1_000;

const WORDS = Object.fromEntries(STATS_RANGE_NAMES.map((name) => [name, RANGES[name].words])) as Readonly<
  Record<StatsRange, string>
>;

/** How things are, what needs a person, then the figures. */
export function Overview({ route }: { readonly route: Route }) {
  const ranges = choiceIn(route, "range", WORDS, "1h");
  const range = ranges.picked;
  const stats = useResource<Stats>(withQuery("/v1/stats", { range, by: "subscription", limit: MOST_ROWS }), {
    everyMs: EVERY_MS[range],
  });
  const subscriptions = useResource<readonly Subscription[]>("/v1/subscriptions", {
    everyMs: SUBSCRIPTIONS_EVERY_MS,
  });
  const figures = stats.answer?.data;
  const isEmpty = subscriptions.answer?.data.length === 0;
  const table = figures?.rows !== undefined && subscriptions.answer !== undefined && (
    <WorstSubscriptions
      figures={figures.rows as readonly SubscriptionFigures[]}
      subscriptions={subscriptions.answer.data}
      range={range}
    />
  );
  if (stats.error !== undefined && figures === undefined) return <Waiting source={stats} screen="Overview" />;
  return (
    <>
      <Verdict stats={figures} statsError={stats.error} />
      {isEmpty && table}
      <div class="cols level">
        <Section
          title={`Last ${RANGES[range].words}`}
          label="Figures over time"
          aside={<Segments label="Range" {...ranges} />}
        >
          <div class="panel">
            {figures === undefined ? (
              <Waiting source={stats} rows={11} />
            ) : (
              <>
                <StatStrip stats={figures} />
                <RateChart stats={figures} />
              </>
            )}
          </div>
        </Section>
        <Section title="Unfinished, by cause" aside={<span class="muted small">oldest</span>}>
          {figures === undefined ? (
            <div class="panel">
              <Waiting source={stats} rows={11} />
            </div>
          ) : (
            <Backlog backlog={figures.backlog} />
          )}
        </Section>
      </div>
      {!isEmpty && (table || <Waiting source={subscriptions} rows={3} />)}
      {may("admin") && <DoctorProblems />}
    </>
  );
}

const SHOWN = 12;

interface Row extends SubscriptionFigures {
  readonly state: SubscriptionState;
}

const COLUMNS: readonly Column<Row>[] = [
  { head: "Subscription", grow: true, cell: (row) => <SubscriptionName record={row} /> },
  { head: "State", cell: ({ state }) => <Status state={state} /> },
  { head: "Action", wide: true, cell: ({ action }) => <code class="cut-text">{action}</code> },
  { head: "Delivered", right: true, wide: true, cell: ({ delivered }) => numberText(delivered) },
  { head: "Success", right: true, cell: (row) => <Success figures={row} /> },
  { head: "p50", right: true, wide: true, cell: ({ attempt_ms: { p50 } }) => timeText(p50) },
  { head: "p95", right: true, wide: true, cell: ({ attempt_ms: { p95 } }) => timeText(p95) },
  { head: "Last error", wide: true, cell: (row) => <LastError figures={row} /> },
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
function WorstSubscriptions(props: {
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
    <Section
      title="Subscriptions"
      note={
        rows.length > 0 &&
        `${numberText(props.subscriptions.length)}, the worst first; figures of the last ${RANGES[props.range].words}`
      }
      aside={<a href={linkTo(["subscriptions"])}>All subscriptions</a>}
    >
      <div class="panel worst">
        {rows.length === 0 ? (
          <NoSubscriptions />
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
    </Section>
  );
}

const DOCTOR_EVERY_MS = 60_000;
/** What these find stands in words above. */
const SAID_ABOVE = new Set(["handlers", "backlog"]);

/** What the doctor finds wrong with the server itself; nothing, where it finds nothing. */
function DoctorProblems() {
  const { answer } = useResource<readonly Finding[]>("/v1/doctor", { everyMs: DOCTOR_EVERY_MS });
  const found = answer?.data.filter(({ status, check }) => status !== "ok" && !SAID_ABOVE.has(check)) ?? [];
  if (found.length === 0) return null;
  const problems = found.filter(({ status }) => status === "problem");
  return (
    <Section
      title="The doctor's findings"
      note={`${countText(problems.length, "problem")}, ${countText(found.length - problems.length, "warning")}`}
      aside={<a href={linkTo(["doctor"])}>All checks</a>}
    >
      {problems.length > 0 && <Findings findings={problems} />}
    </Section>
  );
}
