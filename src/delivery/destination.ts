import { literalAddress } from "../domain/handler-url.ts";

/** Where a handler is, taken apart. */
export interface Destination {
  readonly origin: string;
  /** With the query. */
  readonly path: string;
  readonly port: number;
  /** Its host, when that is an address and no name. */
  readonly literal: string | undefined;
}

const MOST_KEPT = 10_000;
const kept = new Map<string, Destination>();

/**
 * Takes a handler's address apart, each once, as that takes longer than most of what there is to do for a delivery.
 * `undefined` for a text that is no URL.
 */
export function destinationOf(handler: string): Destination | undefined {
  const known = kept.get(handler);
  if (known !== undefined) return known;
  if (!URL.canParse(handler)) return undefined;
  const url = new URL(handler);
  const { origin, pathname, search } = url;
  const found = { origin, path: pathname + search, port: portOf(url), literal: literalAddress(url) };
  if (kept.size >= MOST_KEPT) kept.clear();
  kept.set(handler, found);
  return found;
}

function portOf({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "http:" ? 80 : 443;
}
