import { HTTP_STATUS } from "../../domain/error.ts";
import { ATTENTION_QUERY, ATTENTION_REASONS, NODE_STATUSES } from "../../domain/operations.ts";
import { PAGE_BYTES } from "../response-budget.ts";
import { jsonReply } from "../response.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { field } from "../../model/field.ts";
import { record } from "../../model/schemas.ts";
import { failure, many, one, operation, ref, type Route, targetOf } from "./route.ts";

/** The answers of `/health`. */
export const HEALTH_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Health: record(
    {
      status: { enum: ["ok", "unavailable"] },
      version: field.text,
      reason: { ...field.text, description: "Why it is unavailable." },
      store: { enum: ["ok", "unavailable"] },
      engine: { enum: ["running", "failing", "stopped"] },
      instance: { ...field.text, description: "New at each start." },
    },
    ["reason"],
  ),
};

/** The record, and the members that every failure has. */
const UNHEALTHY: JsonSchema = record({ data: ref("Health"), ...failure });

export const HEALTH_ROUTE: Route = {
  ...targetOf("health"),
  operationId: "getHealth",
  tag: "health",
  summary: "Check that the service commits and delivers",
  access: "open",
  answers: {
    200: { description: "Healthy.", schema: one("Health") },
    503: { description: "Not healthy; `error` says why.", schema: UNHEALTHY },
  },
  failures: [],
  async handle(evreg) {
    const { data } = await evreg.health();
    if (data.status === "ok") return jsonReply(200, { data });
    const error = data.reason ?? "The service is unavailable.";
    return jsonReply(503, { data, error, details: {}, code: HTTP_STATUS.unavailable }, [
      ["retry-after", "2"],
    ]);
  },
};

/** The media type of the text format of Prometheus. */
const MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export const METRICS_ROUTE: Route = {
  method: "GET",
  path: "/metrics",
  operationId: "getMetrics",
  tag: "health",
  summary: "Metrics for Prometheus",
  description: "They cover all applications, so the scope must not be limited to one.",
  access: "token",
  scope: "read",
  answers: {
    200: {
      description: "Metrics in the text format of Prometheus.",
      mediaType: "text/plain",
      schema: { type: "string" },
    },
  },
  failures: [],
  async handle(evreg, request, { responses }) {
    return responses.answer(request, PAGE_BYTES, async () => ({
      status: 200,
      body: await evreg.metrics(),
      mediaType: MEDIA_TYPE,
    }));
  },
};

/** The answer of what has the data open. */
export const NODE_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Node: record({
    id: { ...field.text, description: "New at each start." },
    host: field.text,
    pid: field.count,
    version: field.text,
    status: {
      enum: NODE_STATUSES,
      description: "`visiting` is a command, which delivers nothing; what is `gone` ended without a word.",
    },
    started_at: field.timestamp,
    seen_at: { ...field.timestamp, description: "Its last sign of life." },
    shards: { ...field.count, description: "How many of the shards it has." },
    leaving: {
      ...field.count,
      description: "How many of these it gives up once nothing of them is under way.",
    },
  }),
};

const NODES_META: JsonSchema = record({
  shards: { ...field.count, description: "In so many parts the subscriptions are shared out." },
  answered_by: { ...field.text, description: "The node that answers." },
});

export const NODES_ROUTE: Route = operation("nodes", "listNodes", "List the servers on these data", {
  tag: "health",
  description:
    "One on a data folder; on a database each server and command that has it open. Each server sends the deliveries of its share of the subscriptions.",
  scope: "admin",
  answer: ["The nodes, in the order of their starts.", many("Node", NODES_META)],
});

/** The answer of the doctor. */
export const DOCTOR_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Finding: record({
    check: { ...field.text, description: "What was checked." },
    status: {
      enum: ["ok", "warning", "problem"],
      description: "A `warning` becomes a problem later, or may be intended.",
    },
    found: field.text,
    remedy: { ...field.nullableText, description: "What to do about it; `null` if all is well." },
  }),
};

const FINDINGS_META: JsonSchema = record({ time: field.timestamp });

export const DOCTOR_ROUTE: Route = operation("doctor", "examine", "Diagnose the server", {
  tag: "health",
  description:
    "Checks the store, its folder and disk, the clock, tokens that expire soon, failing handlers and the backlog. Each finding says what to do. The answer is 200 even if something is wrong. `meta.time` is the server's clock.",
  scope: "admin",
  answer: ["The findings, one for each check.", many("Finding", FINDINGS_META)],
  maxBytes: 0,
});

/** What needs a person. */
export const ATTENTION_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Attention: record({
    reason: {
      enum: ATTENTION_REASONS,
      description:
        "The gravest first. `deactivated`: evreg gave up on its handler. `blocked`: a delivery that used up its retries holds up those behind it. `failing`: the last attempt failed. `failed`: deliveries failed for good within a day. `unclaimed`: deliveries of a pull subscription have been due for five minutes, and nobody claims from it. `slowed`: no attempt begins for now. `paused`: a person paused it, and it holds deliveries or has missed events.",
    },
    subscription_id: field.rowid,
    application: field.text,
    subscription: field.text,
    action: field.text,
    since: {
      ...field.nullableTimestamp,
      description:
        "Of `blocked` and `failing` the first failure since the last success. Of `failed` the first within a day. Of `unclaimed` the later of the last claim and of when the oldest delivery became due. `null` if it is not known.",
    },
    until: {
      ...field.nullableTimestamp,
      description: "No attempt begins before this; `null` if one may.",
    },
    published_from: {
      ...field.nullableTimestamp,
      description:
        "Of `failed`: when the oldest event was published whose delivery failed, so that a replay from there sends all of them. Of all that ever failed, where `at_least` says that not all were counted. `null` otherwise.",
    },
    deliveries: {
      ...field.nullableCount,
      description: "Deliveries that are held, wait (behind the one that blocks), or have failed.",
    },
    at_least: {
      type: "boolean",
      description: "Whether only so many deliveries were counted, and there may be more.",
    },
    delivery_id: {
      type: ["integer", "null"],
      minimum: 1,
      description: "The delivery that blocks it, or that failed last.",
    },
    missed: {
      ...field.nullableCount,
      description:
        "Events published since it was paused or deactivated, for which it has no delivery; `null` if that is not known.",
    },
    error: {
      ...field.nullableText,
      description: "The last error such as `HTTP 500`, or why it was deactivated.",
    },
    found: { ...field.text, description: "A sentence with all this." },
  }),
};

const ATTENTION_META: JsonSchema = record({
  total: { ...field.count, description: "Of all there are." },
  subscriptions: {
    ...field.count,
    description: "How many subscriptions they are of: one may have two entries.",
  },
  time: field.timestamp,
});

export const ATTENTION_ROUTE: Route = operation("attention", "listAttention", "List what needs a person", {
  tag: "health",
  description:
    "Subscriptions that are deactivated, blocked, failing or slowed, those from which no consumer claims, what failed for good within a day, and pauses that hold deliveries or miss events. A subscription has one entry for its state at most, and one for what failed. What it costs does not grow with the deliveries there are.",
  query: ATTENTION_QUERY,
  answer: [
    "The entries, the gravest first, and of each kind what has lasted longest.",
    many("Attention", ATTENTION_META),
  ],
});
