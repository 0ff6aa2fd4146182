import type { AttemptErrorCode } from "./delivery.ts";

/** Why an attempt got no answer, in a few words. `evreg help delivery-states` has what to do. */
export const ATTEMPT_ERROR_WORDS: Readonly<Record<AttemptErrorCode, string>> = {
  timeout: "timed out",
  dns_failed: "host not found",
  address_refused: "address not allowed",
  connection_refused: "nobody listens",
  connection_reset: "connection cut",
  tls_failed: "TLS failed",
  protocol_error: "no HTTP answer",
  interrupted: "interrupted",
  secret_unreadable: "secret unreadable",
  event_damaged: "event damaged",
  network_error: "network failed",
  consumer_failed: "consumer failed",
};
