/**
 * A new idempotency key for what a person publishes. It is kept until an answer comes: a browser sends a request again by
 * itself where the connection ends, and a person where no answer came, and neither may publish twice.
 */
export function newAttemptKey(): string {
  // `randomUUID` is there only where the page came encrypted or from this machine.
  return crypto.getRandomValues(new Uint8Array(16)).join("-");
}
