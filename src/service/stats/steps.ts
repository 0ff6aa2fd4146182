import type { Column, StatsSeries } from "../../domain/stats/stats.ts";
import type { Tally } from "../../metrics/stats/tally.ts";

type Values = { readonly [K in keyof StatsSeries]: number | null };

/** The steps of an answer; `undefined` where nothing is known. */
export type StepValues = (Values | undefined)[];

export function valuesOf(tally: Tally): Values {
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

const COUNTED = ["published", "refused", "delivered", "failed_attempts", "failed"] as const;

/**
 * Fills the steps of a minute of which only the whole is known, or only the last steps: the rest of the counts goes to the steps
 * before these, as even as whole numbers can be.
 * @param first the minute's first step
 */
export function fillMinute(steps: StepValues, first: number, length: number, whole: Values): void {
  if (first >= steps.length) return;
  const known = steps.slice(first, first + length).filter((step) => step !== undefined);
  // Where all are known, what is left is of before counting began in the first.
  const parts = Math.max(1, Math.min(length, steps.length - first) - known.length);
  const rest = COUNTED.map((name) => {
    const others = known.reduce((sum, step) => sum + (step[name] ?? 0), 0);
    return [name, Math.max(0, (whole[name] ?? 0) - others)] as const;
  });
  if (known.length > 0 && rest.every(([, count]) => count === 0)) return;
  for (let part = 0; part < parts; part += 1) {
    const step = steps[first + part];
    const own = rest.map(([name, count]) => {
      const share = Math.floor((count * (part + 1)) / parts) - Math.floor((count * part) / parts);
      return [name, (step?.[name] ?? 0) + share] as const;
    });
    steps[first + part] = { ...(step ?? whole), ...Object.fromEntries(own) };
  }
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
