import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { BacklogCause, Stats, StatsBacklog } from "../../../domain/stats/stats.ts";
import { Chart, type ChartLine, momentText } from "../../parts/chart.tsx";
import { linkTo } from "../../parts/route.ts";
import { durationText, failedShare, numberText, percentText, rateText, useNow } from "../../parts/values.tsx";
import { RANGES, type Rates, ratesOf } from "./figures.ts";

const unfinishedIn = (backlog: StatsBacklog): number =>
  CAUSES.reduce((total, [cause]) => total + backlog[cause].deliveries, 0);

const figure = (name: string, value: ComponentChildren, about: ComponentChildren) => (
  <div>
    <dt>{name}</dt>
    <dd class="figure">{value}</dd>
    <dd>{about}</dd>
  </div>
);

/** The figures of the range in large. */
export function StatStrip({ stats }: { readonly stats: Stats }) {
  const { totals, backlog, range } = stats;
  const { per, perMs } = RANGES[range];
  const spanMs = Math.max(1, Date.parse(stats.to) - Date.parse(stats.from));
  const rate = (count: number): string => `${rateText((count * perMs) / spanMs)} a ${per}`;
  const share = failedShare(totals);
  const { p50, p99 } = totals.latency_ms;
  const stuck = backlog.blocked.deliveries + backlog.held.deliveries;
  return (
    <dl class="figures">
      {figure("Delivered", numberText(totals.delivered), rate(totals.delivered))}
      {figure("Published", numberText(totals.published), rate(totals.published))}
      {figure(
        "Failed attempts",
        share === null ? "–" : percentText(share),
        totals.failed > 0
          ? `${numberText(totals.failed)} for good`
          : `${numberText(totals.failed_attempts)} of them`,
      )}
      {figure(
        "Delivered after",
        p50 === null ? "–" : durationText(p50),
        p99 === null ? "nothing delivered" : `p50; p99 ${durationText(p99)}`,
      )}
      {figure(
        "Unfinished now",
        <>
          {numberText(unfinishedIn(backlog))}
          {!backlog.is_whole && <small> or more</small>}
        </>,
        stuck === 0 ? "none is stuck" : `${numberText(stuck)} are stuck`,
      )}
    </dl>
  );
}

const SAMPLES = {
  line: <path class="line" d="M0 5h14" />,
  dashed: <path class="dashed" d="M0 5h14" />,
  bars: <rect class="bars" x="3" y="1" width="8" height="8" rx="1" />,
} as const;

/** What was delivered, published and refused by handlers over time. */
export function RateChart({ stats }: { readonly stats: Stats }) {
  const rates = useMemo(() => ratesOf(stats), [stats]);
  const lines = useMemo<readonly ChartLine[]>(
    () => [
      { name: "Delivered", values: rates.delivered, look: "line" },
      { name: "Published", values: rates.published, look: "dashed" },
      { name: "Failed attempts", values: rates.failed, look: "bars" },
    ],
    [rates],
  );
  return (
    <>
      <p class="legend">
        {lines.map(({ name, look }) => (
          <span key={name}>
            <svg viewBox="0 0 14 10" aria-hidden="true">
              {SAMPLES[look]}
            </svg>
            {name}
          </span>
        ))}
        <span class="muted push">a {RANGES[stats.range].per}</span>
      </p>
      <Chart times={rates.times} lines={lines} story={storyOf(stats, rates)} />
    </>
  );
}

/** The chart in words. */
function storyOf(stats: Stats, { times, delivered, failed }: Rates): string {
  const { per, words } = RANGES[stats.range];
  const peak = (values: readonly number[]): string => {
    const most = Math.max(...values);
    if (!(most > 0)) return "";
    const at = momentText(times[values.indexOf(most)] ?? 0, stats.step_ms / 1_000);
    return `, at most ${rateText(most)} a ${per} at ${at}`;
  };
  return [
    `Rates of the last ${words}.`,
    `${numberText(stats.totals.delivered)} delivered${peak(delivered)};`,
    `${numberText(stats.totals.published)} published;`,
    `${numberText(stats.totals.failed_attempts)} failed attempts${peak(failed)}.`,
  ].join(" ");
}

/** How it looks: what waits for a person is red. */
type Look = "danger" | "warn" | "accent" | "grey";
type Cause = readonly [cause: BacklogCause, words: string, why: string, look: Look];

/** All that keeps a delivery from its end, the worst first. */
export const CAUSES: readonly Cause[] = [
  ["blocked", "Behind a blocked one", "ordered ones wait for a person", "danger"],
  ["held", "Held", "paused or deactivated", "grey"],
  ["waiting", "Waiting", "for their retry, or behind another", "warn"],
  ["paced", "Paced", "by a rate, or for consumers", "warn"],
  ["busy", "Busy handlers", "behind others of their subscription", "grey"],
  ["delivering", "Being delivered", "an attempt is under way", "accent"],
  ["due", "Due", "to be sent next", "grey"],
];

/** What is unfinished now, by why it is, with the age of the oldest. */
export function Backlog({ backlog }: { readonly backlog: StatsBacklog }) {
  const now = useNow();
  const most = Math.max(1, ...CAUSES.map(([cause]) => backlog[cause].deliveries));
  return (
    <ul class="backlog panel">
      {CAUSES.map(([cause, words, why, look]) => {
        const { deliveries, since } = backlog[cause];
        return (
          <li key={cause}>
            <div>
              <a class="strong" href={linkTo(["deliveries"], { cause })}>
                {words}
              </a>
              <span class="strong">{numberText(deliveries)}</span>
            </div>
            <div class="muted small">
              <span>{deliveries === 0 && cause === "due" ? "none waits for evreg itself" : why}</span>
              <span>{since === null ? "–" : durationText(Math.max(0, now - Date.parse(since)))}</span>
            </div>
            <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
              <rect class="ground" width="100" height="1" />
              <rect class={look} width={(100 * deliveries) / most} height="1" />
            </svg>
          </li>
        );
      })}
    </ul>
  );
}
