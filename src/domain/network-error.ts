import type { ConsumerErrorCode } from "./pull.ts";

/** Why a request got no answer, as attempts of evreg and of consumers say it. */
type NetworkErrorCode = Exclude<ConsumerErrorCode, "consumer_failed">;

const BY_CODE: Readonly<Record<string, NetworkErrorCode>> = {
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

const BY_PREFIX: readonly (readonly [string, NetworkErrorCode])[] = [
  ["EAI_", "dns_failed"],
  ["ERR_TLS_", "tls_failed"],
  ["ERR_SSL_", "tls_failed"],
  ["CERT_", "tls_failed"],
  ["DEPTH_ZERO_", "tls_failed"],
  ["SELF_SIGNED_", "tls_failed"],
  ["UNABLE_TO_", "tls_failed"],
  ["HOSTNAME_MISMATCH", "tls_failed"],
  ["INVALID_", "tls_failed"],
  ["PATH_LENGTH_EXCEEDED", "tls_failed"],
];

/** Why a request got no answer, by what Node or undici reported. */
export function networkErrorCode(error: unknown): NetworkErrorCode {
  if (!(error instanceof Error)) return "network_error";
  if (error.name === "TimeoutError") return "timeout";
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === "getaddrinfo") return "dns_failed";
  if (error.name === "HTTPParserError") return "protocol_error";
  // undici has one code for a connection that closed and for an answer that makes no sense; only the words differ.
  if (code === "UND_ERR_SOCKET" && error.message.startsWith("bad ")) return "protocol_error";
  // An aborted request has a number as its code.
  if (typeof code === "string") {
    const known = BY_CODE[code] ?? BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1];
    if (known !== undefined) return known;
  }
  // Several addresses were tried; the last failure of a known kind says why.
  if (error instanceof AggregateError) {
    for (const inner of error.errors.toReversed()) {
      const known = networkErrorCode(inner);
      if (known !== "network_error") return known;
    }
  }
  return "network_error";
}
