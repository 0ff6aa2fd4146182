import type { ComponentChildren } from "preact";
import type { Stats, StatsBacklog } from "../../../domain/stats/stats.ts";
import { durationText, numberText } from "../../parts/time.tsx";
import { failedShare, percentText, rateText } from "../../parts/texts.ts";
import { linkTo } from "../../parts/route.ts";
import { CAUSES } from "./backlog.tsx";
import { RANGES } from "./figures.ts";

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
      {figure(
        "Published",
        numberText(totals.published),
        totals.refused === 0 ? (
          rate(totals.published)
        ) : (
          <a href={linkTo(["actions"], { sort: "Refused 24 h" })}>{numberText(totals.refused)} refused</a>
        ),
      )}
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
