import { NONE } from "../../parts/layout.tsx";
import { useMemo } from "preact/hooks";
import type { Stats } from "../../../domain/stats/stats.ts";
import { Chart, type ChartLine, momentText } from "../../parts/chart.tsx";
import { rateText } from "../../parts/texts.ts";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText, numberText } from "../../parts/time.tsx";
import { type FigureRow, figureRows, RANGES, type Rates, ratesOf } from "./figures.ts";

const TABLE_ROWS = 24;

const SAMPLES = {
  line: <path class="line" d="M0 5h14" />,
  dashed: <path class="dashed" d="M0 5h14" />,
  bars: <rect class="bars" x="3" y="1" width="8" height="8" rx="1" />,
} as const;

/** What was delivered, published and refused by handlers over time. */
export function RateChart({ stats, isTable }: { readonly stats: Stats; readonly isTable: boolean }) {
  const rates = useMemo(() => ratesOf(stats), [stats]);
  const lines = useMemo<readonly ChartLine[]>(
    () => [
      { name: "Delivered", values: rates.delivered, look: "line" },
      { name: "Published", values: rates.published, look: "dashed" },
      { name: "Failed attempts", values: rates.failed, look: "bars" },
    ],
    [rates],
  );
  if (isTable) return <FigureTable stats={stats} />;
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
  const peak = (values: readonly (number | null)[]): string => {
    const most = Math.max(...values.map((value) => value ?? 0));
    if (!(most > 0)) return "";
    const at = momentText(times[values.indexOf(most)] ?? 0, stats.step_ms / 1_000);
    return `, at most ${rateText(most)} a ${per} at ${at}`;
  };
  const gaps = delivered.filter((value) => value === null).length;
  return [
    `Rates of the last ${words}.`,
    `${numberText(stats.totals.delivered)} delivered${peak(delivered)};`,
    `${numberText(stats.totals.published)} published;`,
    `${numberText(stats.totals.failed_attempts)} failed attempts${peak(failed)}.`,
    ...(gaps > 0
      ? [`Nothing is known of ${gaps} of ${delivered.length} steps: the server did not run.`]
      : []),
    "The same figures are there as a table.",
  ].join(" ");
}

const countText = (value: number | null) =>
  value === null ? <span class="muted">not known</span> : numberText(value);
const timeText = (value: number | null) => (value === null ? NONE : durationText(value));

function FigureTable({ stats }: { readonly stats: Stats }) {
  const rows = useMemo(() => figureRows(stats, TABLE_ROWS), [stats]);
  const stepS = stats.step_ms / 1_000;
  const columns: readonly Column<FigureRow>[] = [
    { head: "From", grow: true, cell: ({ at }) => momentText(at, stepS) },
    { head: "Delivered", right: true, cell: ({ delivered }) => countText(delivered) },
    { head: "Published", right: true, cell: ({ published }) => countText(published) },
    { head: "Failed attempts", right: true, cell: ({ failed }) => countText(failed) },
    { head: "p50", right: true, wide: true, cell: ({ p50 }) => timeText(p50) },
    { head: "p99", right: true, wide: true, cell: ({ p99 }) => timeText(p99) },
  ];
  return <Table label="Figures over time" rows={rows} columns={columns} keyOf={({ at }) => at} />;
}
