import { HTTP_STATUS } from "../../domain/error.ts";
import { PAGE_BYTES } from "../response-budget.ts";
import { jsonReply } from "../response.ts";
import { failure, field, type JsonSchema, many, one, operation, record, ref, type Route } from "./route.ts";

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
  method: "GET",
  path: "/health",
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

/** Of the text format of Prometheus. */
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

export const DOCTOR_ROUTE: Route = operation("GET /v1/doctor", "examine", "Diagnose the server", {
  tag: "health",
  description:
    "Checks the store, its folder and disk, the clock, tokens that expire soon, failing handlers and the backlog. Each finding says what to do. The answer is 200 even if something is wrong. `meta.time` is the server's clock.",
  scope: "admin",
  answer: ["The findings, one for each check.", many("Finding", FINDINGS_META)],
  maxBytes: 0,
  run: (evreg) => evreg.doctor(),
});
