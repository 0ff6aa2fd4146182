import { PAGE_BYTES } from "./answer-memory.ts";
import type { Route } from "./route.ts";

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
  async handle(evreg, incoming, { memory }) {
    return memory.answer(incoming, PAGE_BYTES, async () => ({
      status: 200,
      body: await evreg.metrics(),
      mediaType: MEDIA_TYPE,
    }));
  },
};
