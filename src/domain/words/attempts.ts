/** Why an attempt got no answer, in a few words. A closed set: it is stored, listed and counted. */
export const ATTEMPT_ERROR_WORDS = {
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
} as const;

/** What the log says of an attempt by its outcome, and at which level. */
export const ATTEMPT_LOG = {
  delivered: ["debug", "delivered"],
  filtered: ["debug", "filtered"],
  interrupted: ["info", "attempt cut short, delivery handed back"],
  retried: ["info", "attempt failed, will be retried"],
  gone: ["warn", "delivery failed for good, the handler is gone"],
  failed: ["warn", "delivery failed for good"],
} as const;

/** Why TLS failed. A closed set, as the codes are. */
export const TLS_REASON_WORDS = {
  expired: "its certificate has expired",
  not_yet_valid: "its certificate is not valid yet, by the clock here",
  wrong_name: "its certificate is for another name",
  self_signed: "its certificate is self-signed and not trusted here; delivery.ca can name it",
  unknown_authority:
    "its certificate is by an authority that is not trusted here, or it leaves out those in between; delivery.ca can name an authority",
  certificate_refused: "its certificate was refused",
  handshake_failed: "no TLS was agreed on: another version, or what listens there does not speak it",
} as const;
type TlsReason = keyof typeof TLS_REASON_WORDS;

/** Why an attempt got no answer, and for TLS also why that failed. What only a newer server knows stays a code. */
export function attemptErrorText(
  code: keyof typeof ATTEMPT_ERROR_WORDS,
  tlsReason: TlsReason | null | undefined,
): string {
  const words = Object.hasOwn(ATTEMPT_ERROR_WORDS, code) ? ATTEMPT_ERROR_WORDS[code] : code;
  if (code !== "tls_failed" || !tlsReason) return words;
  return `${words}: ${tlsReasonText(tlsReason)}`;
}

/** As the rest of a sentence about the handler. */
export function tlsReasonText(reason: TlsReason): string {
  return Object.hasOwn(TLS_REASON_WORDS, reason) ? TLS_REASON_WORDS[reason] : reason;
}
