import type { AttemptErrorCode } from "../domain/delivery.ts";
import { EvregError } from "../domain/error.ts";

const BY_CODE: Readonly<Record<string, AttemptErrorCode>> = {
  ETIMEDOUT: "timeout",
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  UND_ERR_HEADERS_TIMEOUT: "timeout",
  UND_ERR_BODY_TIMEOUT: "timeout",
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_reset",
  ECONNABORTED: "connection_reset",
  EPIPE: "connection_reset",
  UND_ERR_SOCKET: "connection_reset",
  UND_ERR_HEADERS_OVERFLOW: "protocol_error",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "protocol_error",
  UND_ERR_INVALID_ARG: "protocol_error",
  // What undici's parser takes for granted of an answer, such as a status of at least 100.
  ERR_ASSERTION: "protocol_error",
  EPROTO: "tls_failed",
  ENOTFOUND: "dns_failed",
};

const BY_PREFIX: readonly (readonly [string, AttemptErrorCode])[] = [
  ["EAI_", "dns_failed"],
  ["ERR_TLS_", "tls_failed"],
  ["ERR_SSL_", "tls_failed"],
  ["CERT_", "tls_failed"],
  ["DEPTH_ZERO_", "tls_failed"],
  ["SELF_SIGNED_", "tls_failed"],
  ["UNABLE_TO_", "tls_failed"],
  ["HOSTNAME_MISMATCH", "tls_failed"],
  ["INVALID_CA", "tls_failed"],
];

/** The stored code for what Node, undici or the address guard reported when an attempt got no answer. */
export function attemptErrorCode(error: unknown): AttemptErrorCode {
  if (error instanceof EvregError) return "address_refused";
  if (!(error instanceof Error)) return "network_error";
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === "getaddrinfo") return "dns_failed";
  if (error.name === "HTTPParserError") return "protocol_error";
  // undici has one code for a connection that closed and for an answer that makes no sense; only the words differ.
  if (code === "UND_ERR_SOCKET" && error.message.startsWith("bad ")) return "protocol_error";
  if (code !== undefined) {
    const known = BY_CODE[code] ?? BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1];
    if (known !== undefined) return known;
  }
  // Several addresses were tried; what went wrong last with any of them that is known says the most.
  if (error instanceof AggregateError) {
    for (const inner of error.errors.toReversed()) {
      const known = attemptErrorCode(inner);
      if (known !== "network_error") return known;
    }
  }
  return "network_error";
}
