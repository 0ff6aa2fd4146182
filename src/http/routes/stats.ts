import { BACKLOG_CAUSES, STATS_QUERY, STATS_RANGE_NAMES } from "../../domain/stats/stats.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { field } from "../../model/field.ts";
import { record } from "../../model/schemas.ts";
import { one, operation, ref, type Route } from "./route.ts";

const milliseconds: JsonSchema = { type: ["integer", "null"], minimum: 0 };

const COLUMNS = {
  published: "Events stored.",
  refused: "Requests to publish, and items of batches, that were refused.",
  delivered: "Attempts that delivered.",
  failed_attempts: "Attempts that failed.",
  failed: "Deliveries that failed for good.",
  latency_p50_ms: "From publishing to the handler's answer, retries included: half took no longer.",
  latency_p95_ms: "The same for 95 of 100.",
  latency_p99_ms: "The same for 99 of 100.",
} as const;

const column = (description: string): JsonSchema => ({
  type: "array",
  items: milliseconds,
  description: `${description} \`null\` where nothing is known.`,
});

const FIGURES = {
  published: field.count,
  refused: field.count,
  delivered: field.count,
  failed_attempts: field.count,
  failed: field.count,
  latency_ms: ref("Percentiles"),
  attempt_ms: ref("Percentiles"),
} as const;

/** Figures as they are answered. */
export const STATS_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Percentiles: {
    ...record({ p50: milliseconds, p95: milliseconds, p99: milliseconds }),
    description: "In milliseconds, to 6 %; `null` where there were none.",
  },
  Figures: record(FIGURES),
  Stats: record(
    {
      range: { type: "string", enum: STATS_RANGE_NAMES },
      from: field.timestamp,
      to: { ...field.timestamp, description: "Now; the last step is not over." },
      step_ms: field.count,
      series: {
        ...record(Object.fromEntries(Object.entries(COLUMNS).map(([name, text]) => [name, column(text)]))),
        description: "A column for each figure, with a value for each step from `from` on.",
      },
      totals: ref("Figures"),
      backlog: {
        ...record({
          ...Object.fromEntries(BACKLOG_CAUSES.map((cause) => [cause, ref("BacklogShare")])),
          is_whole: { type: "boolean", description: "`false` when there is more than was counted." },
        }),
        description:
          "What is unfinished now: due, due behind others of its subscription (`busy`), due at a rate limit or for a consumer (`paced`), to be sent later or behind another one (`waiting`), behind one that blocks (`blocked`), under way, held.",
      },
      rows: {
        type: "array",
        items: { anyOf: [ref("ActionFigures"), ref("SubscriptionFigures")] },
        description: "With `by`: the busiest first, then those with nothing, by name.",
      },
    },
    ["rows"],
  ),
  ActionFigures: record({
    action: field.text,
    application: field.text,
    ...FIGURES,
    last_published_at: { ...field.nullableTimestamp, description: "Of its last event that is kept." },
  }),
  SubscriptionFigures: record({
    subscription_id: field.rowid,
    application: field.text,
    subscription: field.text,
    action: field.text,
    ...FIGURES,
    last_error: {
      ...field.nullableText,
      description: "Of the last attempt that failed in this time: a status or an error code.",
    },
  }),
  BacklogShare: record({
    deliveries: field.count,
    since: {
      ...field.nullableTimestamp,
      description: "Since when the first of them has been due, or under way; for `blocked`, what blocks.",
    },
  }),
};

export const STATS_ROUTE: Route = operation("stats", "getStats", "Figures over time", {
  description:
    "What happened up to now, and what is unfinished. A token that is limited to applications gets the events of their actions and the deliveries of their subscriptions.",
  query: STATS_QUERY,
  answer: ["The figures.", one("Stats")],
});
