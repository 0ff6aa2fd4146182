export type WebhookErrorCode =
  | "missing_header"
  | "malformed_header"
  | "wrong_signature"
  | "too_old"
  | "too_new"
  | "not_a_delivery";

/** Why a request is not to be believed. It may be logged; to whoever sent the request a plain 401 says enough. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
  readonly code: WebhookErrorCode;

  constructor(code: WebhookErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
