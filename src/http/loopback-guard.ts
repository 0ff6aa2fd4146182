import { EvregError } from "../domain/error.ts";
import type { Incoming } from "./incoming.ts";

const LOOPBACK_AUTHORITY = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/**
 * Where no token is asked for, a web page in this machine's browser must not be able to act: a name of its own that it
 * points at 127.0.0.1 shows in `Host`, a form or script it sends from elsewhere shows in `Origin`, and what it only loads,
 * as an image or by a link, in `Sec-Fetch-Site`. `forbidden` for each of them.
 * @param isOpen for what anybody may load, and which costs nothing
 */
export function checkLoopbackCaller(incoming: Incoming, isOpen: boolean): void {
  const host = incoming.header("host");
  if (host === undefined || !LOOPBACK_AUTHORITY.test(host)) {
    throw new EvregError(
      "forbidden",
      "This server asks for no token, so it answers only requests for localhost, 127.0.0.1 or [::1]: address it by one of these, or turn token authentication on.",
      { host: (host ?? "").slice(0, 255) },
    );
  }
  const origin = incoming.header("origin");
  if (origin !== undefined && !isOriginOf(origin, host)) {
    throw new EvregError("forbidden", "A web page of another origin may not use this server.", {
      origin: origin.slice(0, 255),
    });
  }
  if (!isOpen && FOREIGN_SITES.has(incoming.header("sec-fetch-site"))) {
    throw new EvregError(
      "forbidden",
      "A web page of another site may not use this server. Type the address into the browser yourself, or use a program.",
    );
  }
}

/** `none` is what a person typed, and programs send nothing. A page of another port is `same-site`, and no less foreign. */
const FOREIGN_SITES: ReadonlySet<string | undefined> = new Set(["cross-site", "same-site"]);

function isOriginOf(origin: string, host: string): boolean {
  return origin.toLowerCase() === `http://${host.toLowerCase()}`;
}
