const NAME = "evreg.token";

/** The token of this tab. No other tab, port or request has it, as a cookie would. */
export function readSession(): string | null {
  return sessionStorage.getItem(NAME);
}

export function keepSession(token: string): void {
  sessionStorage.setItem(NAME, token);
}

export function endSession(): void {
  sessionStorage.removeItem(NAME);
}
