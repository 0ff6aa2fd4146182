import { type Column, floorTo, type StatsSeries } from "../../domain/stats/stats.ts";
import type { Tally } from "../../domain/stats/tally.ts";

type Values = { readonly [K in keyof StatsSeries]: number | null };

/** The steps of an answer; `undefined` where nothing is known. */
export type StepValues = (Values | undefined)[];

function valuesOf(tally: Tally): Values {
  const { published, refused, delivered, failedAttempts, failed, latency } = tally;
  const { p50, p95, p99 } = latency;
  return {
    published,
    refused,
    delivered,
    failed_attempts: failedAttempts,
    failed,
    latency_p50_ms: p50,
    latency_p95_ms: p95,
    latency_p99_ms: p99,
  };
}

interface StepTimes {
  readonly fromMs: number;
  readonly nowMs: number;
  readonly stepMs: number;
  /** Of what is stored: a step, or more where the steps are shorter than ten seconds. */
  readonly ownMs: number;
  readonly steps: number;
}

/** @param tallies by the start of what they are of */
export function stepValues(
  tallies: ReadonlyMap<number, Tally>,
  { fromMs, nowMs, stepMs, ownMs, steps }: StepTimes,
): StepValues {
  const stored = new Map([...tallies].map(([startMs, tally]) => [startMs, valuesOf(tally)]));
  return Array.from({ length: steps }, (_, index) => {
    const ms = fromMs + index * stepMs;
    const startMs = floorTo(ms, ownMs);
    const values = stored.get(startMs);
    if (values === undefined || stepMs === ownMs) return values;
    const parts = Math.min(ownMs, floorTo(nowMs, stepMs) + stepMs - startMs) / stepMs;
    return shareOf(values, (ms - startMs) / stepMs, parts);
  });
}

const COUNTED = ["published", "refused", "delivered", "failed_attempts", "failed"] as const;

/** One of so many parts, as even as whole numbers can be. */
function shareOf(whole: Values, part: number, parts: number): Values {
  const counts = COUNTED.map((name) => {
    const count = whole[name] ?? 0;
    return [name, Math.floor((count * (part + 1)) / parts) - Math.floor((count * part) / parts)] as const;
  });
  return { ...whole, ...Object.fromEntries(counts) };
}

export function seriesOf(steps: StepValues): StatsSeries {
  const column = (name: keyof StatsSeries): Column => steps.map((values) => values?.[name] ?? null);
  return {
    published: column("published"),
    refused: column("refused"),
    delivered: column("delivered"),
    failed_attempts: column("failed_attempts"),
    failed: column("failed"),
    latency_p50_ms: column("latency_p50_ms"),
    latency_p95_ms: column("latency_p95_ms"),
    latency_p99_ms: column("latency_p99_ms"),
  };
}
