/**
 * Only what this server sends runs, nothing goes elsewhere, and no page of others shows this one. No script can make markup
 * of text.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

export const PAGE_PATH = "/ui";

const HEADERS: readonly string[] = [
  ["content-security-policy", CONTENT_SECURITY_POLICY],
  ["referrer-policy", "no-referrer"],
  ["cross-origin-opener-policy", "same-origin"],
  ["cross-origin-embedder-policy", "require-corp"],
  ["cross-origin-resource-policy", "same-origin"],
].flat();
const NONE: readonly string[] = [];

/** Headers of every answer at the page's addresses, refusals too: names and values by turns. */
export function policyAt(path: string): readonly string[] {
  return path === PAGE_PATH || path.startsWith(`${PAGE_PATH}/`) ? HEADERS : NONE;
}
