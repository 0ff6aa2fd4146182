const NAME = "evreg.token";
const OWN_ID = "evreg.token-id";

/** The token of this tab. No other tab, port or request has it, as a cookie would. */
export function readSession(): string | null {
  return sessionStorage.getItem(NAME);
}

/** @param id of a token that this tab was given for itself, and revokes when it signs out */
export function keepSession(token: string, id?: number): void {
  endSession();
  sessionStorage.setItem(NAME, token);
  if (id !== undefined) sessionStorage.setItem(OWN_ID, String(id));
}

/** The token's rowid, if nobody else has it. */
export function ownTokenId(): string | null {
  return sessionStorage.getItem(OWN_ID);
}

export function endSession(): void {
  sessionStorage.removeItem(NAME);
  sessionStorage.removeItem(OWN_ID);
}
