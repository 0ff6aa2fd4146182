import type { TargetedPointerEvent } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { marksUpTo, timeMarks } from "./chart-scales.ts";
import { clock, day, numberText, rateText } from "./values.tsx";

export interface ChartLine {
  readonly name: string;
  /** A value for each step. */
  readonly values: readonly number[];
  /** line: a line on a soft ground; dashed: a thin one; bars: from the zero line up. */
  readonly look: "line" | "dashed" | "bars";
}

const EDGE = { top: 8, right: 8, bottom: 22 } as const;
const DIGIT_WIDTH = 7;
const MARK_HEIGHT = 44;
const MARK_WIDTH = 64;
const BAR_SHARE = 0.6;
const BAR_WIDEST = 10;
/** Room above the highest value. */
const HEADROOM = 1.06;

const clockOfMinutes = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
/** `11-24`: the days of the page without their year. */
const dayOf = (date: Date): string => day.format(date).slice(5);

const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

/** The text of a moment on the axis: as exact as the marks are apart. */
function markText(at: number, apart: number): string {
  const date = new Date(at * 1_000);
  if (apart >= DAY_S) return dayOf(date);
  return (apart < MINUTE_S ? clock : clockOfMinutes).format(date);
}

/** The moment of a step, with its day where the chart spans several. */
export function momentText(at: number, stepS: number): string {
  const date = new Date(at * 1_000);
  const time = (stepS < MINUTE_S ? clock : clockOfMinutes).format(date);
  return stepS >= HOUR_S ? `${dayOf(date)} ${time}` : time;
}

/** Where values and times lie, in pixels. */
interface Scales {
  readonly x: (time: number) => number;
  readonly y: (value: number) => number;
  readonly slot: number;
}

const point = (value: number): string => value.toFixed(1);

function linePath(
  times: readonly number[],
  values: readonly number[],
  { x, y }: Scales,
  isGround = false,
): string {
  const points = values.map((value, index) => `${point(x(times[index]!))} ${point(y(value))}`).join("L");
  if (!isGround || values.length === 0) return points && `M${points}`;
  const [first, last] = [times[0]!, times.at(-1)!].map((time) => point(x(time)));
  return `M${first} ${point(y(0))}L${points}L${last} ${point(y(0))}Z`;
}

function barsPath(times: readonly number[], values: readonly number[], { x, y, slot }: Scales): string {
  const width = Math.max(1, Math.min(BAR_WIDEST, slot * BAR_SHARE));
  return values
    .map((value, index) => {
      if (value === 0) return "";
      return `M${point(x(times[index]!) - width / 2)} ${point(y(0))}V${point(y(value))}h${point(width)}V${point(y(0))}Z`;
    })
    .join("");
}

/**
 * Values over time. Nothing is smoothed, and the zero line is there.
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
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    const element = box.current!;
    const watch = new ResizeObserver(() =>
      setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  const from = times[0] ?? 0;
  const to = times.at(-1) ?? from;
  const stepS = times.length > 1 ? times[1]! - from : 1;
  const { width, height } = size;
  const most = Math.max(1, ...lines.flatMap(({ values }) => values)) * HEADROOM;
  const marks = marksUpTo(most, Math.max(1, Math.floor(height / MARK_HEIGHT)));
  const left = 12 + DIGIT_WIDTH * Math.max(...marks.map((mark) => numberText(mark).length));
  const right = width - EDGE.right;
  const bottom = height - EDGE.bottom;
  const slot = (right - left) / Math.max(1, times.length);
  const scales: Scales = {
    slot,
    x: (time) => left + slot / 2 + ((time - from) / stepS) * slot,
    y: (value) => bottom - (value / most) * (bottom - EDGE.top),
  };
  const zoneS = -new Date(to * 1_000).getTimezoneOffset() * MINUTE_S;
  const time = timeMarks(from, to, Math.max(1, Math.floor((right - left) / MARK_WIDTH)), zoneS);
  const drawn = useMemo(
    () =>
      width === 0
        ? null
        : lines.map(({ name, look, values }) => (
            <g key={name}>
              {look === "line" && <path class="ground" d={linePath(times, values, scales, true)} />}
              <path class={look} d={(look === "bars" ? barsPath : linePath)(times, values, scales)} />
            </g>
          )),
    [times, lines, width, height],
  );

  const shown = at === null ? undefined : times[at];
  const move = (event: TargetedPointerEvent<SVGSVGElement>): void => {
    const place = Math.floor(
      (event.clientX - event.currentTarget.getBoundingClientRect().left - left) / slot,
    );
    setAt(place >= 0 && place < times.length ? place : null);
  };
  useEffect(() => {
    if (tip.current === null || shown === undefined) return;
    const x = scales.x(shown);
    tip.current.style.left = `${x}px`;
    tip.current.classList.toggle("before", x > width / 2);
  });
  return (
    <figure class="chart" role="img" aria-label={story}>
      <div ref={box} class="plot">
        {width > 0 && (
          <svg
            width={width}
            height={height}
            aria-hidden="true"
            onPointerMove={move}
            onPointerDown={move}
            onPointerLeave={() => setAt(null)}
          >
            {marks.map((mark) => (
              <g key={mark}>
                <path class="grid" d={`M${left} ${Math.round(scales.y(mark)) + 0.5}H${right}`} />
                <text x={left - 8} y={scales.y(mark) + 4} text-anchor="end">
                  {numberText(mark)}
                </text>
              </g>
            ))}
            {time.marks.map((mark) => (
              <text
                key={mark}
                x={Math.min(scales.x(mark), width - MARK_WIDTH / 4)}
                y={height - 6}
                text-anchor="middle"
              >
                {markText(mark, time.apart)}
              </text>
            ))}
            {drawn}
            {shown !== undefined && (
              <path class="cursor" d={`M${Math.round(scales.x(shown)) + 0.5} ${EDGE.top}V${bottom}`} />
            )}
          </svg>
        )}
        {shown !== undefined && at !== null && (
          <div ref={tip} class="tip" aria-hidden="true">
            <span class="strong">{momentText(shown, stepS)}</span>
            {lines.map(({ name, values }) => (
              <span key={name}>
                {name}
                <i>{rateText(values[at] ?? 0)}</i>
              </span>
            ))}
          </div>
        )}
      </div>
    </figure>
  );
}
