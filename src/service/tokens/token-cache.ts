import { LRUCache } from "lru-cache";
import { hashToken, isTokenForm, TOKEN_LENGTH } from "../../domain/token-secret.ts";
import { type Principal, type Token, tokenEndMs } from "../../domain/token.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Store } from "../../store/store.ts";

interface CachedToken {
  readonly hash: string;
  /** One object while the token is cached, so that others can keep state by it. */
  readonly principal: Principal;
  readonly endMs: number;
  /** When its last use was recorded. */
  recordedAtMs: number;
}

const MAX_TOKENS = 1_000;
const RECORD_EVERY_MS = 60_000;
const FLUSH_AFTER_MS = 5_000;

/**
 * Verified tokens by their hash, until they expire or are revoked. The last use of a token is recorded at most once a minute,
 * several in one write.
 */
export class TokenCache {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #known = new LRUCache<string, CachedToken>({ max: MAX_TOKENS });
  readonly #uses = new Map<number, number>();
  #flushPlanned = false;
  #revocations = 0;
  /** What is known was read under this version. */
  #version = 0;
  /** Called after a token was revoked: what was begun with it may have to end. */
  onRevoked: () => void = () => {};

  constructor(store: Store, clock: Clock, logger: Logger) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
  }

  /**
   * `undefined` for a token that is ill-formed, unknown, expired or revoked.
   * @throws EvregError `unavailable` while nobody knows here what others have revoked
   */
  authenticate(token: string): Principal | undefined | Promise<Principal | undefined> {
    if (token.length !== TOKEN_LENGTH) return undefined;
    this.#forgetOutdated();
    const hash = hashToken(token);
    const known = this.#known.get(hash);
    if (known !== undefined) return this.#admit(known);
    // Anything else was not made by evreg, so that the store need not be read.
    if (!isTokenForm(token)) return undefined;
    return this.#find(hash).then((cached) => (cached === undefined ? undefined : this.#admit(cached)));
  }

  /** Whether a principal may still act, some time after it was admitted. One without a token always may. */
  async holds(principal: Principal): Promise<boolean> {
    const { tokenId } = principal;
    if (tokenId === undefined) return true;
    const known = this.refresh() ? this.#known.find((cached) => cached.principal === principal) : undefined;
    if (known !== undefined && this.#admit(known) !== undefined) return true;
    // It may have made room for others, or have expired.
    return (await this.valid(tokenId)) !== undefined;
  }

  /** Reads the token of this rowid. `undefined` for one that was revoked or has expired. */
  async valid(tokenId: number): Promise<Token | undefined> {
    const token = (await this.#store.tokens.list()).find(({ rowid }) => rowid === tokenId);
    return token !== undefined && tokenEndMs(token) > this.#clock.now() ? token : undefined;
  }

  #admit(known: CachedToken): Principal | undefined {
    const nowMs = this.#clock.now();
    if (known.endMs <= nowMs) {
      this.#known.delete(known.hash);
      return undefined;
    }
    if (this.#clock.monotonicMs() - known.recordedAtMs >= RECORD_EVERY_MS) this.#recordUse(known, nowMs);
    return known.principal;
  }

  /** Forgets what others have changed since it was read. `false` while nobody knows here whether they have. */
  refresh(): boolean {
    try {
      this.#forgetOutdated();
      return true;
    } catch {
      return false;
    }
  }

  #forgetOutdated(): void {
    const version = this.#store.node.version();
    if (version === this.#version) return;
    this.#version = version;
    this.evict();
  }

  /** Call it once the store has revoked a token. Others may have ended with it; all are read again. */
  evict(): void {
    this.#revocations++;
    this.#known.clear();
    this.onRevoked();
  }

  /** Stores the uses recorded so far. Never rejects. */
  async flush(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = [...this.#uses].map(([rowid, atMs]) => ({ rowid, atMs }));
    this.#uses.clear();
    try {
      await this.#store.tokens.recordUses(uses);
    } catch (error) {
      this.#logger.debug({ err: error }, "The last uses of tokens could not be stored.");
    }
  }

  async #find(hash: string): Promise<CachedToken | undefined> {
    const revocations = this.#revocations;
    const token = await this.#store.tokens.find(hash);
    // It may have been revoked while it was read.
    if (this.#revocations !== revocations) return this.#find(hash);
    if (token === undefined) return undefined;
    // Several requests may have looked for it at once, and it is one caller.
    const other = this.#known.get(hash);
    if (other !== undefined) return other;
    const known: CachedToken = {
      hash,
      principal: {
        name: token.name,
        scopes: token.scopes,
        expires_at: token.expires_at,
        tokenId: token.rowid,
        callerId: token.callerId,
      },
      endMs: tokenEndMs(token),
      recordedAtMs: -Infinity,
    };
    this.#known.set(hash, known);
    return known;
  }

  #recordUse(known: CachedToken, nowMs: number): void {
    known.recordedAtMs = this.#clock.monotonicMs();
    this.#uses.set(known.principal.tokenId!, nowMs);
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    this.#clock.setTimer(() => {
      this.#flushPlanned = false;
      void this.flush();
    }, FLUSH_AFTER_MS);
  }
}
