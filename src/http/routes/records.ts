import { BACKLOG_CAUSES, STATS_RANGE_NAMES } from "../../domain/stats/stats.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { ACTION_ANSWERS } from "../../model/action-answers.ts";
import { ANSWERS, COUNTED } from "../../model/answers.ts";
import { ACTION } from "../../model/action.ts";
import { ATTEMPT, DELIVERY } from "../../model/delivery.ts";
import { EVENT } from "../../model/event.ts";
import { about, answersOf, field, record } from "../../model/field.ts";
import { META } from "../../model/meta.ts";
import { REPLAY, REPLAY_COUNT } from "../../model/replay.ts";
import { SUBSCRIPTION } from "../../model/subscription.ts";
import { TOKEN } from "../../model/token.ts";
import { failure, ref } from "./route.ts";

/** What is answered, by the names that `ref` takes. */
export const RECORDS: Readonly<Record<string, JsonSchema>> = {
  Action: record(answersOf(ACTION)),
  ...ACTION_ANSWERS,
  ...ANSWERS,
  Event: record(answersOf(EVENT), ["deliveries"]),
  PageMeta: META.page,
  BatchItemError: record({
    index: about(field.count, "Index in the batch, from 0."),
    ...failure,
  }),
  Subscription: record(answersOf(SUBSCRIPTION)),
  SubscriptionWithSecret: record({
    ...answersOf(SUBSCRIPTION),
    secret: about(
      field.text,
      "Signs the deliveries of all subscriptions of this application and name. Only the answer that creates one of them or rotates their secret shows it.",
    ),
  }),
  Delivery: record(answersOf(DELIVERY)),
  Attempt: record(answersOf(ATTEMPT)),
  SubscriptionAttempt: record({
    delivery_id: field.rowid,
    event_id: field.rowid,
    ...answersOf(ATTEMPT),
  }),
  DeliveryWithAttempts: record({
    ...answersOf(DELIVERY),
    attempts: {
      type: "array",
      items: ref("Attempt"),
      description: "In order; of more than 100, the first 50 and the last 50.",
    },
  }),
  ReplayCount: record(answersOf(REPLAY_COUNT)),
  Replay: record(answersOf(REPLAY)),
  Token: record(answersOf(TOKEN)),
  Identity: record({
    name: about(field.text, "Of the token; `local` if the server requires none."),
    scopes: TOKEN.scopes.answer,
    expires_at: about(field.nullableTimestamp, "When the token expires; `null`: never."),
    data_id: about(
      field.text,
      "Identifies the server's data: the same at all its addresses, and new after a restore.",
    ),
    retries: {
      ...record({
        max_retries: about(field.count, "Of one that is created without a number."),
        retry_schedule: {
          type: ["array", "null"],
          items: field.count,
          description:
            "The waits before each retry in milliseconds, of those without a schedule of their own; the last one goes for all that follow. `null`: 0, 2, 4, 8 and 16 seconds, then doubling up to 6 hours.",
        },
      }),
      description: "The server's settings for subscriptions that say nothing else.",
    },
  }),
  TokenWithSecret: record({ ...answersOf(TOKEN), token: about(field.text, "Only this answer shows it.") }),
  Stats: record(
    {
      range: { type: "string", enum: STATS_RANGE_NAMES },
      from: field.timestamp,
      to: about(field.timestamp, "Now; the last step is not over."),
      step_ms: field.count,
      series: {
        ...record(
          Object.fromEntries(
            Object.entries(COUNTED).map(([name, items]) => [name, { type: "array", items }]),
          ),
        ),
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
  Error: record(failure),
};
