import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { isDark } from "../shell/theme.ts";
import { rateText } from "./rates.ts";
import { numberText } from "./texts.ts";

/** A value for each step; `null` where none is known. */
type Values = readonly (number | null)[];

export interface ChartLine {
  readonly name: string;
  readonly values: Values;
  /** line: a line on a soft ground; dashed: a thin one; bars: from the zero line up. */
  readonly look: "line" | "dashed" | "bars";
}

const BAR_SHARE = 0.6;
const BAR_WIDEST = 10;

/** A colour of the tokens as the browser computes it, which is what a canvas takes. */
function colourOf(element: HTMLElement, name: string): string {
  element.style.color = `var(--${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = "";
  return color;
}

const LOOKS = {
  line: (colour: (name: string) => string): Partial<uPlot.Series> => ({
    stroke: colour("success-mark"),
    fill: colour("success-soft"),
    width: 1.5,
  }),
  dashed: (colour: (name: string) => string): Partial<uPlot.Series> => ({
    stroke: colour("text-3"),
    dash: [3, 3],
    width: 1.25,
  }),
  bars: (colour: (name: string) => string): Partial<uPlot.Series> => ({
    stroke: colour("danger-mark"),
    fill: colour("danger-mark"),
    width: 0,
    paths: uPlot.paths.bars!({ size: [BAR_SHARE, BAR_WIDEST] }),
  }),
} satisfies Readonly<Record<ChartLine["look"], unknown>>;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const clockOfSeconds = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

const MINUTE_S = 60;
const DAY_S = 86_400;

/** The text of a moment on the axis: as exact as the marks are apart. */
function markText(at: number, apart: number): string {
  const date = new Date(at * 1_000);
  if (apart >= DAY_S) return day.format(date);
  return (apart < MINUTE_S ? clockOfSeconds : clock).format(date);
}

/** The moment of a step, with its day where the chart spans several. */
export function momentText(at: number, stepS: number): string {
  const date = new Date(at * 1_000);
  const time = (stepS < MINUTE_S ? clockOfSeconds : clock).format(date);
  return stepS >= 3_600 ? `${day.format(date)} ${time}` : time;
}

/**
 * Values over time. A gap stays a gap, nothing is smoothed, and the zero line is there.
 * @param props.times of the steps' starts, in seconds
 * @param props.story what it shows, for those who do not see it
 */
export function Chart(props: {
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly story: string;
}) {
  const { times, lines, story } = props;
  const box = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const dark = isDark.value;
  const looks = lines.map(({ look }) => look).join();
  const data: uPlot.AlignedData = [[...times], ...lines.map(({ values }) => [...values])];
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    const element = box.current!;
    const colour = (name: string): string => colourOf(element, name);
    const axis = { stroke: colour("text-3"), font: `11px ${getComputedStyle(element).fontFamily}` };
    const grid = { stroke: colour("line"), width: 1 };
    const chart = new uPlot(
      {
        width: element.clientWidth,
        height: element.clientHeight,
        padding: [8, 8, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { size: 7, width: 0 } },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.08)] } },
        axes: [
          {
            ...axis,
            grid: { show: false },
            ticks: { show: false },
            size: 26,
            space: 76,
            values: (_, splits) => splits.map((split) => markText(split, splits[1]! - splits[0]!)),
          },
          {
            ...axis,
            grid,
            ticks: { show: false },
            size: (_, values) => 16 + 7 * Math.max(...(values ?? [""]).map((value) => value.length)),
            space: 44,
            values: (_, splits) => splits.map((split) => numberText(split)),
          },
        ],
        series: [{}, ...lines.map(({ look }) => ({ points: { show: false }, ...LOOKS[look](colour) }))],
        hooks: { setCursor: [(shown) => setAt(shown.cursor.idx ?? null)] },
      },
      latest.current,
      element,
    );
    plot.current = chart;
    const watch = new ResizeObserver(() =>
      chart.setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    watch.observe(element);
    return () => {
      watch.disconnect();
      chart.destroy();
      plot.current = null;
      setAt(null);
    };
  }, [dark, looks]);

  useEffect(() => plot.current?.setData(latest.current), [times, lines]);

  const stepS = times.length > 1 ? times[1]! - times[0]! : 1;
  const time = at === null ? undefined : times[at];
  useEffect(() => {
    if (tip.current === null || plot.current === null || time === undefined) return;
    const left = plot.current.valToPos(time, "x") + plot.current.over.offsetLeft;
    const isRight = left > (box.current?.clientWidth ?? 0) / 2;
    tip.current.style.left = `${left}px`;
    tip.current.classList.toggle("before", isRight);
  }, [time]);
  return (
    <figure class="chart" role="img" aria-label={story}>
      <div ref={box} class="plot" />
      {time !== undefined && at !== null && (
        <div ref={tip} class="tip" aria-hidden="true">
          <b>{momentText(time, stepS)}</b>
          {lines.map(({ name, values }) => (
            <span key={name}>
              {name}
              <i>{values[at] === null || values[at] === undefined ? "–" : rateText(values[at])}</i>
            </span>
          ))}
        </div>
      )}
    </figure>
  );
}
