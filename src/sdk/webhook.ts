import { createHmac, timingSafeEqual } from "node:crypto";
import { parseText } from "../json/parse.ts";

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

// What `evreg/webhook` is: for programs that receive deliveries, so it stands on `node:crypto` alone.

/** The body of a delivery. */
export interface WebhookBody {
  /** One id each time the event is sent: what was done for it before need not be done again. */
  readonly event_id: string;
  readonly action: string;
  readonly payload: unknown;
  /** When the event was published, ISO 8601 UTC. */
  readonly timestamp: string;
  /** Which attempt it is, from 1. */
  readonly delivery_attempt: number;
}

/** The headers of a fetch request, or of one of `node:http` and what stands on it (names in lower case or as they came). */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** How far `webhook-timestamp` may be from this machine's clock, either way; 5 minutes unless told. */
  readonly toleranceMs?: number;
  /**
   * `either` (unless told) also takes a request that has `X-Evreg-Signature` and none of the `webhook-*` headers. That
   * form has no time in it, so a copy of such a request is good for ever; `standard` refuses it.
   */
  readonly accept?: "either" | "standard";
  /** Now, in milliseconds since 1970; the machine's clock unless told. */
  readonly nowMs?: number;
}

const TOLERANCE_MS = 5 * 60_000;
const STANDARD = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;
const OWN = "x-evreg-signature";
const SECRET = /^whsec_([A-Za-z0-9+/]{22,}={0,2})$/;
const SECONDS = /^\d{1,12}$/;

/**
 * The body of a delivery, once it is certain that it came from who knows the secret, as it was sent. With `webhook-*`
 * headers these decide, and one good signature of several is enough; else `X-Evreg-Signature` does.
 *
 * Throws `WebhookError` for a request that must not be believed (answer it 401), and `TypeError` for a secret or a body
 * that none could be verified with. Neither holds a secret, a signature or anything of the body.
 *
 * @param rawBody the bytes as they came, or the text they are in UTF-8; never parsed and written again
 * @param secret as evreg showed it, `whsec_…`; several while it is being changed
 */
export function verify<Body extends WebhookBody = WebhookBody>(
  headers: WebhookHeaders,
  rawBody: string | Uint8Array | ArrayBuffer,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Body {
  const secrets = secretsOf(secret);
  const bytes = bytesOf(rawBody);
  const values = STANDARD.map((name) => headerOf(headers, name));
  if (values.some((value) => value !== undefined)) {
    checkStandard(values, bytes, secrets, options);
  } else {
    checkOwn(headerOf(headers, OWN), bytes, secrets, options);
  }
  return parse(bytes) as Body;
}

function checkStandard(
  values: readonly (string | undefined)[],
  body: Uint8Array,
  secrets: readonly string[],
  { toleranceMs = TOLERANCE_MS, nowMs = Date.now() }: VerifyOptions,
): void {
  const missing = STANDARD.find((_, at) => !values[at]);
  if (missing !== undefined) {
    throw new WebhookError("missing_header", `The request has no ${missing} header.`);
  }
  const [id, seconds, signatures] = values as [string, string, string];
  if (!SECONDS.test(seconds)) {
    throw new WebhookError("malformed_header", "The webhook-timestamp header is not a number of seconds.");
  }
  const sent = signatures.split(" ").filter((one) => one.startsWith("v1,"));
  if (sent.length === 0) {
    throw new WebhookError(
      "malformed_header",
      "The webhook-signature header has no signature of version v1.",
    );
  }
  const known = secrets.map((secret) => {
    const key = Buffer.from(SECRET.exec(secret)?.[1] ?? "", "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${seconds}.`).update(body).digest("base64")}`;
  });
  mustMatch(sent, known);
  checkTime(Number(seconds) * 1_000, nowMs, toleranceMs);
}

function checkTime(sentMs: number, nowMs: number, toleranceMs: number): void {
  const lateMs = nowMs - sentMs;
  // Written so that a tolerance or a clock that is no number refuses.
  if (Math.abs(lateMs) <= toleranceMs) return;
  const apart = `${Math.round(Math.abs(lateMs) / 1_000)} s, where ${toleranceMs / 1_000} s are allowed`;
  throw lateMs < 0
    ? new WebhookError("too_new", `The request is from the future by ${apart}: compare the clocks.`)
    : new WebhookError("too_old", `The request is late by ${apart}: it is a copy, or the clocks differ.`);
}

function checkOwn(
  value: string | undefined,
  body: Uint8Array,
  secrets: readonly string[],
  { accept = "either" }: VerifyOptions,
): void {
  if (!value || accept !== "either") {
    const wanted = accept === "either" ? `neither a webhook-signature nor an ${OWN}` : "no webhook-signature";
    throw new WebhookError("missing_header", `The request has ${wanted} header.`);
  }
  if (!value.startsWith("sha256=")) {
    throw new WebhookError("malformed_header", `The ${OWN} header does not begin with sha256=.`);
  }
  const known = secrets.map((secret) => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
  mustMatch([value], known);
}

/** All are compared, in a time that does not tell how much of one was right. */
function mustMatch(sent: readonly string[], known: readonly string[]): void {
  let isKnown = false;
  for (const one of sent) for (const right of known) if (isEqual(one, right)) isKnown = true;
  if (isKnown) return;
  throw new WebhookError(
    "wrong_signature",
    "The signature is not that of this body by this secret. Is it the subscription's own, and the body as it came?",
  );
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (isGetter(headers)) return headers.get(name) ?? undefined;
  const values = Object.entries(headers).flatMap(([key, value]) =>
    key.toLowerCase() === name ? (value ?? []) : [],
  );
  if (values.length > 1)
    throw new WebhookError("malformed_header", `The ${name} header came more than once.`);
  return values[0];
}

function isGetter(headers: WebhookHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === "function";
}

function secretsOf(secret: string | readonly string[]): readonly string[] {
  // A secret read from a file often has the end of its line.
  const secrets = [secret].flat().map((one: unknown) => (typeof one === "string" ? one.trim() : ""));
  if (secrets.length === 0 || secrets.some((one) => !SECRET.test(one))) {
    throw new TypeError(
      "verify needs the subscription's secret as evreg showed it: whsec_ and base64. Is it set, and whole?",
    );
  }
  return secrets;
}

function bytesOf(rawBody: unknown): Uint8Array {
  if (typeof rawBody === "string") return Buffer.from(rawBody);
  if (rawBody instanceof Uint8Array) return rawBody;
  if (rawBody instanceof ArrayBuffer) return new Uint8Array(rawBody);
  throw new TypeError(
    "verify needs the body as it came, as bytes or text. A parsed one cannot be verified: turn the parser off for this route.",
  );
}

function parse(bytes: Uint8Array): unknown {
  let value: unknown;
  try {
    value = parseText(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    value = undefined;
  }
  if (typeof value === "object" && value !== null && "event_id" in value) return value;
  throw new WebhookError("not_a_delivery", "The signature is right, but the body is not that of a delivery.");
}
