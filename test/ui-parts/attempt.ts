import type { Attempt } from "../../src/domain/delivery.ts";

/** One that failed, with changes. */
export const attempt = (more: Partial<Attempt> = {}): Attempt => ({
  attempt: 1,
  consumer: null,
  started_at: "2026-01-01T00:00:00.000Z",
  duration_ms: 100,
  dns_ms: null,
  connect_ms: null,
  first_byte_ms: null,
  outcome: "failed",
  status_code: 500,
  error_code: null,
  response: null,
  refusal: null,
  tls_reason: null,
  ...more,
});
