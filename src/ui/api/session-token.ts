const NAME = "evreg.token";
const OWN_ID = "evreg.token-id";
const ENDED = "evreg.ended";

/** The token of this tab. No other tab, port or request has it, as a cookie would. */
export function readSession(): string | null {
  return sessionStorage.getItem(NAME);
}

/** @param id of a token that this tab was given for itself, and revokes when it signs out */
export function keepSession(token: string, id?: number): void {
  endSession();
  sessionStorage.removeItem(ENDED);
  sessionStorage.setItem(NAME, token);
  if (id !== undefined) sessionStorage.setItem(OWN_ID, String(id));
}

/** The token's rowid, if nobody else has it. */
export function ownTokenId(): string | null {
  return sessionStorage.getItem(OWN_ID);
}

/** The server takes the token no more. When, and where the page was, is kept for whoever signs in anew. */
export function loseSession(): void {
  if (readSession() !== null) {
    const lost: LostSession = { atMs: Date.now(), address: location.hash };
    sessionStorage.setItem(ENDED, JSON.stringify(lost));
  }
  endSession();
}

export interface LostSession {
  readonly atMs: number;
  readonly address: string;
}

/** What ended by itself, and not by signing out, until somebody signs in. */
export function lostSession(): LostSession | undefined {
  const text = sessionStorage.getItem(ENDED);
  return text === null ? undefined : (JSON.parse(text) as LostSession);
}

export function endSession(): void {
  sessionStorage.removeItem(NAME);
  sessionStorage.removeItem(OWN_ID);
}
