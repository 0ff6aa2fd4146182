import type { AttemptErrorCode, TlsReason } from "./delivery.ts";

/** The header that only the requests of tests have. */
export const TEST_HEADER = "X-Evreg-Test";

/** What one signed attempt outside the queue has shown. It is stored nowhere. */
export interface HandlerTest {
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  /** As the engine judges an attempt: `delivered` for a status from 200 to 299. */
  readonly outcome: "delivered" | "failed";
  readonly error_code: AttemptErrorCode | null;
  /** Of `tls_failed`: what is wrong with the certificate, or the handshake. */
  readonly tls_reason: TlsReason | null;
  /** Of `address_refused`, for callers with `admin` for all applications: the address and the rule. */
  readonly refusal: string | null;
  /** ISO 8601 UTC. */
  readonly started_at: string;
  readonly duration_ms: number;
  /** Parts of it: looking up the host's name, TCP with TLS, and from the request to the beginning of the answer. */
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly request: {
    readonly method: "POST";
    readonly url: string;
    /** Without the bearer, and of signatures only their beginnings. */
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
  };
  /** `null` when no answer came. */
  readonly response: {
    readonly status_code: number;
    readonly headers: Readonly<Record<string, string>>;
    /** The first 1 KiB as text; `null` when there was none. */
    readonly body: string | null;
  } | null;
}
