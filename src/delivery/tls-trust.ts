import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import type { TlsReason } from "../domain/delivery.ts";

/**
 * Trusts authorities beside those that Node trusts by itself (its own, NODE_EXTRA_CA_CERTS, NODE_USE_SYSTEM_CA). To be made
 * once: reading some hundred certificates takes milliseconds.
 * @param ca PEM
 */
export function trusting(ca: string): SecureContext {
  return createSecureContext({ ca: [...getCACertificates("default"), ca] });
}

/** What OpenSSL and Node call it. */
const BY_CODE: Readonly<Record<string, TlsReason>> = {
  CERT_HAS_EXPIRED: "expired",
  CERT_NOT_YET_VALID: "not_yet_valid",
  ERR_TLS_CERT_ALTNAME_INVALID: "wrong_name",
  HOSTNAME_MISMATCH: "wrong_name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "self_signed",
  SELF_SIGNED_CERT_IN_CHAIN: "unknown_authority",
  UNABLE_TO_GET_ISSUER_CERT: "unknown_authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unknown_authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "unknown_authority",
  CERT_UNTRUSTED: "unknown_authority",
};

/** Why TLS failed, of an error that `attemptErrorCode` calls `tls_failed`. */
export function tlsReasonOf(error: unknown): TlsReason {
  // The last of several addresses that is known says why, as for the code.
  if (error instanceof AggregateError) {
    const reasons = error.errors.map(tlsReasonOf);
    return reasons.findLast((reason) => reason !== "certificate_refused") ?? "certificate_refused";
  }
  const { code = "" } = error as NodeJS.ErrnoException;
  const isHandshake = /^(?:EPROTO$|ERR_SSL_|ERR_TLS_)/.test(code);
  return BY_CODE[code] ?? (isHandshake ? "handshake_failed" : "certificate_refused");
}
