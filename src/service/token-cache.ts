import { parseIsoTime } from "../domain/iso-time.ts";
import { hashToken, isTokenForm, TOKEN_LENGTH } from "../domain/token-form.ts";
import type { Principal } from "../domain/token.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Store } from "../store/store.ts";
import { Recent } from "./recent.ts";

interface KnownToken {
  readonly rowid: number;
  /** The same object for as long as the token is known, so that callers can keep what they make of it. */
  readonly principal: Principal;
  readonly expiresAtMs: number;
  /** When its last use was noted. */
  notedAtMs: number;
}

const MAX_TOKENS = 1_000;
const NOTE_EVERY_MS = 60_000;
const FLUSH_AFTER_MS = 5_000;

/**
 * Who a token stands for. Verified tokens are kept by their hash, so that the store is asked once for each; the clock
 * ends them, and revoking drops them. Last uses are gathered and noted at most once a minute for each token.
 */
export class TokenCache {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #known = new Recent<KnownToken>(MAX_TOKENS);
  readonly #uses = new Map<number, number>();
  #flushPlanned = false;
  #revocations = 0;

  constructor(store: Store, clock: Clock, logger: Logger) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** `undefined` for a token that is ill-formed, unknown, expired or revoked. */
  authenticate(token: string): Principal | undefined | Promise<Principal | undefined> {
    if (token.length !== TOKEN_LENGTH) return undefined;
    const hash = hashToken(token);
    const known = this.#known.get(hash);
    if (known !== undefined) return this.#admit(hash, known);
    // Anything else cannot have been minted here: it costs no look into the store.
    if (!isTokenForm(token)) return undefined;
    return this.#find(hash).then((found) => (found === undefined ? undefined : this.#admit(hash, found)));
  }

  #admit(hash: string, known: KnownToken): Principal | undefined {
    const nowMs = this.#clock.now();
    if (known.expiresAtMs <= nowMs) {
      this.#known.delete(hash);
      return undefined;
    }
    if (nowMs - known.notedAtMs >= NOTE_EVERY_MS) this.#note(known, nowMs);
    return known.principal;
  }

  /** To be called once the store has revoked it. */
  forget(rowid: number): void {
    this.#revocations++;
    for (const [hash, known] of this.#known.entries()) {
      if (known.rowid === rowid) this.#known.delete(hash);
    }
  }

  /** Writes down the uses gathered so far. Never rejects: they are not worth failing for. */
  async flush(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = [...this.#uses].map(([rowid, atMs]) => ({ rowid, atMs }));
    this.#uses.clear();
    try {
      await this.#store.touchTokens(uses);
    } catch (error) {
      this.#logger.debug({ err: error }, "The last uses of tokens could not be noted.");
    }
  }

  async #find(hash: string): Promise<KnownToken | undefined> {
    const revocations = this.#revocations;
    const token = await this.#store.findToken(hash);
    // It may be the one that was revoked while it was being looked up.
    if (this.#revocations !== revocations) return this.#find(hash);
    if (token === undefined) return undefined;
    const known: KnownToken = {
      rowid: token.rowid,
      principal: { name: token.name, scopes: token.scopes, expires_at: token.expires_at },
      expiresAtMs: token.expires_at === null ? Infinity : (parseIsoTime(token.expires_at) ?? 0),
      notedAtMs: -Infinity,
    };
    this.#known.set(hash, known);
    return known;
  }

  #note(known: KnownToken, nowMs: number): void {
    known.notedAtMs = nowMs;
    this.#uses.set(known.rowid, nowMs);
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    this.#clock.setTimer(() => {
      this.#flushPlanned = false;
      void this.flush();
    }, FLUSH_AFTER_MS);
  }
}
