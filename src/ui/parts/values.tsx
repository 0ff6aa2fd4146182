import { useEffect, useState } from "preact/hooks";
import { durationText } from "./texts.ts";

/** Numbers, sizes and spans are as well for what is no component. */
export * from "./texts.ts";

const ONE_DAY_MS = 86_400_000;
export const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
/** `2026-11-24`, whatever the reader's language: it is how the API and the command line say days. */
export const day = new Intl.DateTimeFormat("sv", { year: "numeric", month: "2-digit", day: "2-digit" });

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
      {!isNear && `${day.format(date)} `}
      {clock.format(date)}
      {exact === true && <span class="hide-s">{milliseconds}</span>}
    </time>
  );
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

/** `in 24 s` or `24 s ago`, beside the exact time on hover. @param props.past what it says once the time has come */
export function Relative({ at, past }: { readonly at: string; readonly past?: string }) {
  const ms = Date.parse(at) - useNow();
  const text =
    past !== undefined && ms < 1_000
      ? past
      : Math.abs(ms) < 1_000
        ? "now"
        : ms > 0
          ? `in ${durationText(ms)}`
          : `${durationText(-ms)} ago`;
  return (
    <time dateTime={at} title={`${at} (UTC)`} class="plain">
      {text}
    </time>
  );
}

/** When something is planned: `in 24 s`, or `due` once it may happen. */
export const Until = ({ at }: { readonly at: string }) => <Relative at={at} past="due" />;
