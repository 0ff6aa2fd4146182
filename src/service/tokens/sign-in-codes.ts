import { hash } from "node:crypto";
import { EvregError } from "../../domain/error.ts";
import { type Principal, randomText, type Token, type TokenWithSecret } from "../../domain/token.ts";
import type { Clock, Random } from "../../runtime/clock.ts";

const CODE_HOLDS_MS = 2 * 60_000;

/** 226 bits: nobody guesses one. */
const CODE_CHARACTERS = 38;

/** Codes of the last two minutes, used ones among them. */
const MAX_CODES = 1_000;
const MAX_CODES_OF_ONE = 16;

interface IssuedCode {
  readonly principal: Principal;
  /** By the monotonic clock. */
  readonly endsMs: number;
  /** Once it is used. */
  given?: Promise<TokenWithSecret>;
}

interface Exchange {
  /** Makes the token. */
  readonly give: (principal: Principal) => Promise<TokenWithSecret>;
  /** Ends the token that was given for a code before. */
  readonly end: (token: Token, principal: Principal) => Promise<unknown>;
}

/**
 * Codes that sign a browser in, in memory, as hashes. Each is for one use. The address with it may be seen, in the list of
 * processes or the browser's history: a code that is shown again ends what was given for it (RFC 6749, 4.1.2).
 */
export class SignInCodes {
  readonly #clock: Clock;
  readonly #random: Random;
  /** By their hashes, the oldest first. */
  readonly #codes = new Map<string, IssuedCode>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** @throws `rate_limited` when too many were made in the last two minutes */
  issue(principal: Principal): { readonly code: string; readonly expiresAtMs: number } {
    this.#removeExpired();
    const issued = [...this.#codes.values()];
    const own = issued.filter((one) => one.principal.callerId === principal.callerId).length;
    if (own >= MAX_CODES_OF_ONE || issued.length >= MAX_CODES) {
      throw new EvregError(
        "rate_limited",
        "Too many codes for signing in were made in the last two minutes. Try again in a moment.",
      );
    }
    const code = randomText(CODE_CHARACTERS, (count) => this.#random.bytes(count));
    const endsMs = this.#clock.monotonicMs() + CODE_HOLDS_MS;
    this.#codes.set(hash("sha256", code), { principal, endsMs });
    return { code, expiresAtMs: this.#clock.now() + CODE_HOLDS_MS };
  }

  /** @throws `unauthorized` for a code that is unknown, too old or used */
  async exchange(code: string, { give, end }: Exchange): Promise<TokenWithSecret> {
    this.#removeExpired();
    const issued = this.#codes.get(hash("sha256", code));
    if (issued === undefined) {
      throw new EvregError(
        "unauthorized",
        "The code is unknown, or older than two minutes. `evreg open` makes another.",
      );
    }
    if (issued.given === undefined) return (issued.given = give(issued.principal));
    const token = await issued.given.catch(() => undefined);
    if (token !== undefined) await end(token, issued.principal);
    throw new EvregError(
      "unauthorized",
      "This code was used before, so the token that was given for it has been revoked: somebody else may have it. `evreg open` makes another code.",
    );
  }

  #removeExpired(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { endsMs }] of this.#codes) {
      if (endsMs <= nowMs) this.#codes.delete(key);
    }
  }
}
