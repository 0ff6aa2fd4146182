import { EvregError } from "../domain/error.ts";
import { withoutUserInfo } from "../domain/user-info.ts";

export interface Target {
  readonly origin: string;
  /** Before `/v1`; empty or `/prefix`. */
  readonly basePath: string;
  readonly token: string | undefined;
}

const LOOPBACK = /^(?:(?:[\w-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i;
/** What may stand in a header after `Bearer `. */
const TOKEN = /^[\w.~+/-]+=*$/;

/** `usage` for an address or a token that cannot be used, or would not be safe to use. */
export function checkTarget(options: {
  readonly url: string;
  readonly token?: string;
  readonly allowInsecureToken?: boolean;
}): Target {
  const { token, allowInsecureToken = false } = options;
  const url = parseUrl(options.url);
  if (token !== undefined && !TOKEN.test(token)) {
    throw new EvregError(
      "usage",
      "The token has characters that no token has; was more than the token copied?",
    );
  }
  if (
    token !== undefined &&
    url.protocol === "http:" &&
    !LOOPBACK.test(url.hostname) &&
    !allowInsecureToken
  ) {
    throw new EvregError(
      "usage",
      `The token would cross the network unencrypted to ${url.origin}. Use an https: address, or allow it inside a network you trust (allowInsecureToken).`,
      { url: url.origin, option: "allowInsecureToken" },
    );
  }
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, ""), token };
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    // Not shown as given: it may hold a password.
    throw new EvregError("usage", "The address of the server must be a URL such as http://127.0.0.1:7480.");
  }
  if (text.includes("@") || url.search !== "" || url.hash !== "") {
    throw new EvregError(
      "usage",
      `The address of the server must have no user, password, query or fragment: ${withoutUserInfo(url.origin + url.pathname)}.`,
    );
  }
  return url;
}
