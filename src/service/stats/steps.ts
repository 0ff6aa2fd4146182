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

/** One step of each part of a time of which only the whole is known: the counts as even as whole numbers can be. */
export function spread(whole: Values, parts: number): readonly Values[] {
  return Array.from({ length: parts }, (_, part) => {
    const own = COUNTED.map((name) => {
      const count = whole[name] ?? 0;
      return [name, Math.floor((count * (part + 1)) / parts) - Math.floor((count * part) / parts)] as const;
    });
    return { ...whole, ...(Object.fromEntries(own) as Pick<Values, (typeof COUNTED)[number]>) };
  });
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
