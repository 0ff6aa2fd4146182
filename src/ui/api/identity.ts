import { RETRY_DEFAULTS, type RetryDefaults } from "../../domain/retry.ts";
import type { Identity, ScopeName } from "../../domain/token.ts";
import { shared } from "./shared.ts";

/** Who asks, and what its token may do; `null` until the server has said so. */
export const identity = shared<Identity | null>(null);

/** The server's settings for subscriptions that say nothing else. */
export function retryDefaults(): RetryDefaults {
  return identity.value?.retries ?? RETRY_DEFAULTS;
}

const HOLDS: Readonly<Record<ScopeName, readonly string[]>> = {
  admin: ["admin"],
  write: ["write", "admin"],
  listen: ["listen", "write", "admin"],
  read: ["read", "admin"],
  publish: ["publish", "admin"],
};

/**
 * Whether the token may do what needs this scope; what it may not do is not offered.
 * @param application of the record; without it, for all applications
 */
export function may(scope: ScopeName, application?: string): boolean {
  return (identity.value?.scopes ?? []).some((held) => {
    const at = held.indexOf(":");
    const name = at === -1 ? held : held.slice(0, at);
    return HOLDS[scope].includes(name) && (at === -1 || held.slice(at + 1) === application);
  });
}
