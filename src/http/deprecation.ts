import type { Deprecation } from "../domain/action.ts";
import type { HeaderPair } from "./reply.ts";
import type { JsonSchema } from "./route.ts";

/**
 * The headers of RFC 9745: since when, and what to use instead, as a link relative to the address of the request.
 * @param base from the request's folder to that of `actions/`
 */
export function deprecationHeaders(
  { since, successor }: Pick<Deprecation, "since" | "successor">,
  base: "" | "../" = "",
): readonly HeaderPair[] {
  const seconds = Math.floor(Date.parse(since) / 1_000);
  const header: HeaderPair = ["deprecation", `@${seconds}`];
  if (successor === null) return [header];
  return [header, ["link", `<${base}actions/${successor}>; rel="successor-version"`]];
}

/**
 * Of several: since when the first of them is. Which they are, and what to use instead, is in the body.
 */
export function batchDeprecationHeaders(deprecated: readonly Deprecation[]): readonly HeaderPair[] {
  const [first] = deprecated.toSorted((one, other) => Date.parse(one.since) - Date.parse(other.since));
  if (first === undefined) return [];
  const successor = deprecated.length === 1 ? first.successor : null;
  return deprecationHeaders({ since: first.since, successor }, "../");
}

/** For the OpenAPI document. */
export const DEPRECATION_HEADERS: Readonly<Record<string, JsonSchema>> = {
  Deprecation: {
    type: "string",
    pattern: "^@\\d+$",
    description: "Only of a deprecated action: since when, in seconds since the epoch (RFC 9745).",
  },
  Link: {
    type: "string",
    description: 'Only of a deprecated action with a successor: that, as `rel="successor-version"`.',
  },
};
