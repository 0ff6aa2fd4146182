import { useEffect, useState } from "preact/hooks";

const ONE_DAY_MS = 86_400_000;
const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "2-digit", day: "2-digit" });
const shortDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

/**
 * A moment in the reader's zone, the exact one in UTC on hover.
 * @param props.exact with milliseconds
 */
export function Time({ at, exact }: { readonly at: string | null; readonly exact?: boolean }) {
  if (at === null) return <span class="muted">–</span>;
  const date = new Date(at);
  const isNear = Math.abs(Date.now() - date.getTime()) < ONE_DAY_MS / 2;
  const milliseconds = `.${String(date.getMilliseconds()).padStart(3, "0")}`;
  return (
    <time dateTime={at} title={`${at} (UTC)`}>
      {!isNear && `${exact === true ? day.format(date) : shortDay.format(date)} `}
      {clock.format(date)}
      {exact === true && <span class="hide-s">{milliseconds}</span>}
    </time>
  );
}

const UNITS = [
  ["d", ONE_DAY_MS],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** `84 ms`, `1.9 s`, `38 min`, `6 d`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${ms < 10 && ms % 1 !== 0 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const [unit, unitMs] = UNITS.find(([, size]) => ms >= size) ?? UNITS[3];
  const count = ms / unitMs;
  return `${unit === "s" && count < 10 ? Number(count.toFixed(1)) : Math.floor(count)} ${unit}`;
}

export const numberText = (value: number): string => value.toLocaleString("en");

const KIB = 1_024;

/** `860 bytes`, `12.5 KiB`, `3.0 MiB`. */
export function sizeText(bytes: number): string {
  if (bytes < KIB) return `${bytes} ${bytes === 1 ? "byte" : "bytes"}`;
  return bytes < KIB * KIB ? `${(bytes / KIB).toFixed(1)} KiB` : `${(bytes / KIB / KIB).toFixed(1)} MiB`;
}

/** Now, anew each second: for what is said to come "in 24 s". */
export function useNow(everyMs = 1_000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** `in 24 s` or `24 s ago`, beside the exact time on hover. */
export function Relative({ at }: { readonly at: string }) {
  const now = useNow();
  const ms = Date.parse(at) - now;
  const text = Math.abs(ms) < 1_000 ? "now" : ms > 0 ? `in ${durationText(ms)}` : `${durationText(-ms)} ago`;
  return (
    <time dateTime={at} title={`${at} (UTC)`} class="plain">
      {text}
    </time>
  );
}
