import { BACKLOG_CAUSES, STATS_RANGE_NAMES } from "../../domain/stats/stats.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { ACTION_ANSWERS } from "../../model/action-answers.ts";
import { ANSWERS, STATS_COLUMNS } from "../../model/answers.ts";
import { ACTION } from "../../model/action.ts";
import { AUDIT_ENTRY } from "../../model/audit.ts";
import { ATTEMPT, DELIVERY, DELIVERY_WITH_ATTEMPTS } from "../../model/delivery.ts";
import { EVENT } from "../../model/event.ts";
import { about, field, record, recordOf } from "../../model/field.ts";
import { HANDLER_TEST } from "../../model/handler-test.ts";
import { META } from "../../model/meta.ts";
import { ATTENTION, FINDING, HEALTH, NODE } from "../../model/operations.ts";
import { REPLAY, REPLAY_COUNT } from "../../model/replay.ts";
import { SUBSCRIPTION } from "../../model/subscription.ts";
import { TOKEN } from "../../model/token.ts";
import { failure, ref } from "./route.ts";

const column = (name: string, description: string): JsonSchema => ({
  type: "array",
  items: name.endsWith("_ms") ? field.nullableCount : field.count,
  description,
});

/** What is answered, by the names that `ref` takes. */
export const RECORDS: Readonly<Record<string, JsonSchema>> = {
  Action: recordOf(ACTION),
  ...ACTION_ANSWERS,
  ...ANSWERS,
  Event: recordOf(EVENT),
  PageMeta: META.page,
  BatchItemError: record({
    index: about(field.count, "Index in the batch, from 0."),
    ...failure,
  }),
  Subscription: recordOf(SUBSCRIPTION),
  SubscriptionWithSecret: recordOf(SUBSCRIPTION, {
    secret: about(
      field.text,
      "Signs the deliveries of all subscriptions of this application and name. Only the answer that creates one of them or rotates their secret shows it.",
    ),
  }),
  HandlerTest: recordOf(HANDLER_TEST),
  Delivery: recordOf(DELIVERY),
  Attempt: recordOf(ATTEMPT),
  SubscriptionAttempt: recordOf({
    delivery_id: { answer: field.rowid },
    event_id: { answer: field.rowid },
    ...ATTEMPT,
  }),
  DeliveryWithAttempts: recordOf(DELIVERY_WITH_ATTEMPTS),
  ReplayCount: recordOf(REPLAY_COUNT),
  Replay: recordOf(REPLAY),
  Token: recordOf(TOKEN),
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
  TokenWithSecret: recordOf(TOKEN, { token: about(field.text, "Only this answer shows it.") }),
  Stats: record(
    {
      range: { type: "string", enum: STATS_RANGE_NAMES },
      from: field.timestamp,
      to: about(field.timestamp, "Now; the last step is not over."),
      step_ms: field.count,
      series: {
        ...record(
          Object.fromEntries(Object.entries(STATS_COLUMNS).map(([name, text]) => [name, column(name, text)])),
        ),
        description:
          "A column for each figure, with a value for each step from `from` on. A time is `null` where nothing was delivered.",
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
  AuditEntry: recordOf(AUDIT_ENTRY),
  Health: recordOf(HEALTH),
  Attention: recordOf(ATTENTION),
  Node: recordOf(NODE),
  Finding: recordOf(FINDING),
  Error: record(failure),
};
