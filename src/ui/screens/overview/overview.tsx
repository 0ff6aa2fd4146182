import {
  type Stats,
  STATS_RANGE_NAMES,
  type StatsRange,
  type SubscriptionFigures,
} from "../../../domain/stats/stats.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { may } from "../../api/identity.ts";
import { withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { Segments } from "../../parts/button.tsx";
import { Section } from "../../parts/layout.tsx";
import { Failed, Waiting } from "../../parts/states.tsx";
import { goTo, linkTo, type Route } from "../../parts/route.ts";
import { Backlog } from "./backlog.tsx";
import { DoctorProblems } from "./doctor-problems.tsx";
import { RANGES } from "./figures.ts";
import { RateChart } from "./rate-chart.tsx";
import { StatStrip } from "./stat-strip.tsx";
import { Verdict } from "./verdict.tsx";
import { WorstSubscriptions } from "./worst-subscriptions.tsx";

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
  const range = STATS_RANGE_NAMES.find((name) => name === route.query["range"]) ?? "1h";
  const isTable = route.query["figures"] === "table";
  const stats = useResource<Stats>(withQuery("/v1/stats", { range, by: "subscription", limit: MOST_ROWS }), {
    everyMs: EVERY_MS[range],
  });
  const subscriptions = useResource<readonly Subscription[]>("/v1/subscriptions", {
    everyMs: SUBSCRIPTIONS_EVERY_MS,
  });
  const figures = stats.answer?.data;
  const goWith = (query: Readonly<Record<string, string | undefined>>): void =>
    goTo(linkTo([], { ...route.query, ...query }), { replace: true });
  const isEmpty = subscriptions.answer?.data.length === 0;
  const table = figures?.rows !== undefined && subscriptions.answer !== undefined && (
    <WorstSubscriptions
      figures={figures.rows as readonly SubscriptionFigures[]}
      subscriptions={subscriptions.answer.data}
      range={range}
    />
  );
  if (stats.error !== undefined && figures === undefined) {
    return (
      <>
        <h1>Overview</h1>
        <Failed error={stats.error} reload={stats.reload} />
      </>
    );
  }
  return (
    <>
      <Verdict stats={figures} statsError={stats.error} />
      {isEmpty && table}
      <div class="cols level">
        <Section
          title={`Last ${RANGES[range].words}`}
          label="Figures over time"
          aside={
            <span class="push row">
              <button
                class="btn bare"
                aria-pressed={isTable}
                onClick={() => goWith({ figures: isTable ? undefined : "table" })}
              >
                {isTable ? "As a chart" : "As a table"}
              </button>
              <Segments
                label="Range"
                choices={WORDS}
                picked={range}
                pick={(name) => goWith({ range: name === "1h" ? undefined : name })}
              />
            </span>
          }
        >
          <div class="panel">
            {figures === undefined ? (
              <Waiting of={stats} rows={11} />
            ) : (
              <>
                <StatStrip stats={figures} />
                <RateChart stats={figures} isTable={isTable} />
              </>
            )}
          </div>
        </Section>
        <Section title="Unfinished, by cause" aside={<span class="aside push">oldest</span>}>
          {figures === undefined ? (
            <div class="panel">
              <Waiting of={stats} rows={11} />
            </div>
          ) : (
            <Backlog backlog={figures.backlog} />
          )}
        </Section>
      </div>
      {!isEmpty && (table || <Waiting of={subscriptions} rows={3} />)}
      {may("admin") && <DoctorProblems />}
    </>
  );
}
