import type { AttemptErrorCode } from "./delivery.ts";

/** Why an attempt got no answer, in a few words. `evreg help delivery-states` has what to do. */
export const ATTEMPT_ERROR_WORDS: Readonly<Record<AttemptErrorCode, string>> = {
  timeout: "no answer in time",
  dns_failed: "host not found",
  address_refused: "address not allowed",
  connection_refused: "nothing listens there",
  connection_reset: "connection closed without an answer",
  tls_failed: "no trusted TLS connection",
  protocol_error: "the answer is not HTTP",
  interrupted: "interrupted by a stop",
  secret_unreadable: "the secret cannot be read",
  event_damaged: "the event is damaged",
  network_error: "the network failed",
  consumer_failed: "the consumer failed",
};
