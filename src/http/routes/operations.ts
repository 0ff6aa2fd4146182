import { HTTP_STATUS } from "../../domain/error.ts";
import { AUDIT_QUERY } from "../../domain/audit.ts";
import { ATTENTION_QUERY } from "../../domain/operations.ts";
import { STATS_QUERY } from "../../domain/stats/stats.ts";
import { PAGE_BYTES } from "../response-budget.ts";
import { jsonReply } from "../response.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { about, field, record } from "../../model/field.ts";
import { failure, many, one, operation, ref, routeAt, type Route, targetOf } from "./route.ts";

/** The record, and the members that every failure has. */
const UNHEALTHY: JsonSchema = record({ data: ref("Health"), ...failure });

const CHECK_HEALTH = "Check that the service commits and delivers";

/** The media type of the text format of Prometheus. */
const MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8";

const NODES_META: JsonSchema = record({
  shards: about(field.count, "In so many parts the subscriptions are shared out."),
  answered_by: about(field.text, "The node that answers."),
});

const FINDINGS_META: JsonSchema = record({ time: field.timestamp });

const ATTENTION_META: JsonSchema = record({
  total: about(field.count, "Of all there are."),
  subscriptions: about(field.count, "How many subscriptions they are of: one may have two entries."),
  time: field.timestamp,
});

/** What a server says of itself. */
export const OPERATION_ROUTES: readonly Route[] = [
  operation("stats", "getStats", "Figures over time", {
    description:
      "What happened up to now, and what is unfinished. A token that is limited to applications gets the events of their actions and the deliveries of their subscriptions.",
    query: STATS_QUERY,
    answer: ["The figures.", one("Stats")],
  }),
  operation("audit.list", "listAudit", "List who changed what, newest first", {
    scope: "admin",
    description:
      "Changes of actions, subscriptions and tokens, replays that were begun or cancelled, skipped deliveries, and restores. Kept for `retention.audit` of the configuration.",
    query: AUDIT_QUERY,
    answer: ["The changes.", many("AuditEntry")],
  }),
  routeAt(targetOf("health"), "getHealth", CHECK_HEALTH, {
    tag: "health",
    access: "open",
    answers: {
      200: { description: "Healthy.", schema: one("Health") },
      503: { description: "Not healthy; `error` says why.", schema: UNHEALTHY },
    },
    async handle(evreg) {
      const { data } = await evreg.health();
      if (data.status === "ok") return jsonReply(200, { data });
      const error = data.reason ?? "The service is unavailable.";
      const failed = { data, error, details: {}, code: HTTP_STATUS.unavailable };
      return jsonReply(503, failed, [["retry-after", "2"]]);
    },
  }),
  routeAt("GET /metrics", "getMetrics", "Metrics for Prometheus", {
    tag: "health",
    description: "They cover all applications, so the scope must not be limited to one.",
    answers: {
      200: {
        description: "Metrics in the text format of Prometheus.",
        mediaType: "text/plain",
        schema: { type: "string" },
      },
    },
    async handle(evreg, request, { responses }) {
      return responses.answer(request, PAGE_BYTES, async () => ({
        status: 200,
        body: await evreg.metrics(),
        mediaType: MEDIA_TYPE,
      }));
    },
  }),
  operation("attention", "listAttention", "List what needs a person", {
    tag: "health",
    description:
      "Subscriptions that are deactivated, blocked, failing or slowed, those from which no consumer claims, what failed for good within a day, and pauses that hold deliveries or miss events. A subscription has one entry for its state at most, and one for what failed. What it costs does not grow with the deliveries there are.",
    query: ATTENTION_QUERY,
    answer: [
      "The entries, the gravest first, and of each kind what has lasted longest.",
      many("Attention", ATTENTION_META),
    ],
  }),
  operation("nodes", "listNodes", "List the servers on these data", {
    tag: "health",
    description:
      "One on a data folder; on a database each server and command that has it open. Each server sends the deliveries of its share of the subscriptions.",
    scope: "admin",
    answer: ["The nodes, in the order of their starts.", many("Node", NODES_META)],
  }),
  operation("doctor", "examine", "Diagnose the server", {
    tag: "health",
    description:
      "Checks the store, its folder and disk, the clock, tokens that expire soon, failing handlers and the backlog. Each finding says what to do. The answer is 200 even if something is wrong. `meta.time` is the server's clock.",
    scope: "admin",
    answer: ["The findings, one for each check.", many("Finding", FINDINGS_META)],
    maxBytes: 0,
  }),
];
