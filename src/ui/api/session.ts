import { RETRY_DEFAULTS, type RetryDefaults } from "../../domain/retry.ts";
import { HOLDERS, type Identity, parseScope, type ScopeName } from "../../domain/token.ts";
import { shared } from "./shared.ts";

const NAME = "evreg.token";
/** Pages of version 0.3.0 kept something else as `evreg.ended`, and a tab may have it still. */
const ENDED = "evreg.ended-at";

/** The token of this tab. No other tab, port or request has it, as a cookie would. */
export function readSession(): string | null {
  return sessionStorage.getItem(NAME);
}

export function keepSession(token: string): void {
  sessionStorage.removeItem(ENDED);
  sessionStorage.setItem(NAME, token);
}

/** The server takes the token no more. When that was is kept for whoever signs in anew. */
export function loseSession(): void {
  if (readSession() !== null) sessionStorage.setItem(ENDED, new Date().toISOString());
  endSession();
}

/** When a session ended by itself, and not by signing out, until somebody signs in. */
export function readSessionEnd(): string | null {
  return sessionStorage.getItem(ENDED);
}

export function endSession(): void {
  sessionStorage.removeItem(NAME);
}

/** Who asks, and what its token may do; `null` until the server has said so. */
export const identity = shared<Identity | null>(null);

/** The server's settings for subscriptions that say nothing else. */
export function retryDefaults(): RetryDefaults {
  return identity.value?.retries ?? RETRY_DEFAULTS;
}

/**
 * Whether the token may do what needs this scope; what it may not do is not offered.
 * @param application of the record; without it, for all applications
 */
export function may(scope: ScopeName, application?: string): boolean {
  return heldFor(scope).some((limit) => limit === undefined || limit === application);
}

/** Whether it may do so for anything at all. */
export const maySome = (scope: ScopeName): boolean => heldFor(scope).length > 0;

/** The applications that it may do so for, where it is limited to such; `undefined` among them stands for all. */
export function heldFor(scope: ScopeName): readonly (string | undefined)[] {
  const held = (identity.value?.scopes ?? []).flatMap((one) => parseScope(one) ?? []);
  return held.filter(({ name }) => HOLDERS[scope].includes(name)).map(({ application }) => application);
}
