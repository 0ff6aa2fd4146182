import type { Stats, StatsBacklog } from "../../../domain/stats/stats.ts";
import { durationText, numberText } from "../../parts/time.tsx";
import { failedShare, percentText, rateText } from "../../parts/rates.ts";
import { linkTo } from "../../shell/route.ts";
import { CAUSES } from "./backlog.tsx";
import { RANGES } from "./figures.ts";

const unfinishedIn = (backlog: StatsBacklog): number =>
  CAUSES.reduce((total, { cause }) => total + backlog[cause].deliveries, 0);

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
      <div>
        <dt>Delivered</dt>
        <dd class="figure">{numberText(totals.delivered)}</dd>
        <dd>{rate(totals.delivered)}</dd>
      </div>
      <div>
        <dt>Published</dt>
        <dd class="figure">{numberText(totals.published)}</dd>
        <dd>
          {totals.refused === 0 ? (
            rate(totals.published)
          ) : (
            <a href={linkTo(["actions"], { sort: "Refused 24 h" })}>{numberText(totals.refused)} refused</a>
          )}
        </dd>
      </div>
      <div>
        <dt>Failed attempts</dt>
        <dd class="figure">{share === null ? "–" : percentText(share)}</dd>
        <dd>
          {totals.failed > 0
            ? `${numberText(totals.failed)} for good`
            : `${numberText(totals.failed_attempts)} of them`}
        </dd>
      </div>
      <div>
        <dt>Delivered after</dt>
        <dd class="figure">{p50 === null ? "–" : durationText(p50)}</dd>
        <dd>{p99 === null ? "nothing delivered" : `p50; p99 ${durationText(p99)}`}</dd>
      </div>
      <div>
        <dt>Unfinished now</dt>
        <dd class="figure">
          {numberText(unfinishedIn(backlog))}
          {!backlog.is_whole && <small> or more</small>}
        </dd>
        <dd>{stuck === 0 ? "none is stuck" : `${numberText(stuck)} are stuck`}</dd>
      </div>
    </dl>
  );
}
