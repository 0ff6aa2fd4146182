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
      instance: { ...field.text, description: "Made anew at each start." },
    },
    ["reason"],
  ),
};

/** `/health` while something is wrong: the record, and the members that every failure has. */
const UNHEALTHY: JsonSchema = record({ data: ref("Health"), ...failure });

export const HEALTH_ROUTE: Route = {
  method: "GET",
  path: "/health",
  operationId: "getHealth",
  tag: "health",
  summary: "Whether the service commits and delivers",
  access: "open",
  answers: {
    200: { description: "It does.", schema: one("Health") },
    503: { description: "It does not; `error` says why.", schema: UNHEALTHY },
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
  summary: "What this server has counted and measured, for Prometheus",
  description: "For all applications together, so the scope may not be limited to one.",
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
    check: { ...field.text, description: "What was looked at." },
    status: {
      enum: ["ok", "warning", "problem"],
      description: "A `warning` will become a problem, or is one that may be meant.",
    },
    found: field.text,
    remedy: { type: ["string", "null"], description: "What to do about it; `null` when all is well." },
  }),
};

const FINDINGS_META: JsonSchema = record({ time: field.timestamp });

export const DOCTOR_ROUTE: Route = operation({
  path: "/v1/doctor",
  operationId: "examine",
  tag: "health",
  summary: "What is well, what is wrong, and what to do about it",
  description:
    "The store, its folder and disk, the clock, tokens near their end, handlers that fail and what waits. A finding that something is wrong is answered with 200 as well. `meta.time` is the server's clock.",
  scope: "admin",
  answer: ["What was looked at, each with what was found.", many("Finding", FINDINGS_META)],
  maxBytes: 0,
  run: (evreg) => evreg.doctor(),
});
