import { LRUCache } from "lru-cache";
import { LOCAL_ACTOR } from "../domain/audit.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { parseIsoTime } from "../domain/formats.ts";
import { checkLabel } from "../domain/names.ts";
import { hashToken, isTokenForm, mintToken, TOKEN_LENGTH } from "../domain/token-secret.ts";
import {
  checkScope,
  LOCAL_OWNER,
  NEW_TOKEN,
  type NewToken,
  type Principal,
  tokenEndMs,
} from "../domain/token.ts";
import type { TokensPort } from "../evreg.ts";
import type { Clock, Random } from "../runtime/clock.ts";
import type { Store } from "../store/store.ts";
import type { Access } from "./auth.ts";
import { checkId, checkTime, existing, omitUndefined, readBody } from "./requests.ts";
import type { Logger } from "../runtime/logger.ts";

interface TokenParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly tokens: TokenCache;
}

export function tokensPort({ store, clock, random, tokens }: TokenParts, access: Access): TokensPort {
  return {
    async list() {
      access.require("admin");
      return { data: await store.tokens.list() };
    },
    async create(input) {
      access.require("admin");
      const checks = { name: checkLabel, scopes: checkScope, expires_at: checkTime };
      const { name, scopes, expires_at } = readBody<NewToken>(NEW_TOKEN, input, checks);
      const expiresAtMs = expires_at === undefined ? undefined : parseIsoTime(expires_at);
      if (expiresAtMs !== undefined && expiresAtMs <= clock.now()) {
        throw invalidField("expires_at", "must be in the future", expires_at);
      }
      const token = mintToken((count) => random.bytes(count));
      const record = { name, scopes: [...new Set(scopes)], hash: hashToken(token), expiresAtMs };
      const created = await store.tokens.create(omitUndefined(record), clock.now(), access.actor);
      return { data: { ...created, token } };
    },
    async revoke(id) {
      // Everybody may end what it is itself.
      if (access.principal.tokenId !== id) access.require("admin");
      checkId(id);
      // The last admin token can only be revoked on the data folder: without it, none can be made over the network.
      const keepsAdmin = access.principal !== LOCAL_OWNER;
      const revoked = await store.tokens.revoke(id, keepsAdmin, clock.now(), access.actor);
      const data = existing(revoked, "token", id);
      tokens.evict();
      return { data };
    },
  };
}

/**
 * Does what `Service.bootstrapToken` says. `keep` is called first: with a token stored that nobody knows, no later start
 * would make another.
 */
export async function bootstrapToken(
  { store, clock, random }: TokenParts,
  keep: (token: string) => void,
  requested: string | undefined,
): Promise<boolean> {
  if ((await store.tokens.list()).length > 0) return false;
  const token = requested ?? mintToken((count) => random.bytes(count));
  keep(token);
  const record = { name: "bootstrap", scopes: ["admin"], hash: hashToken(token) };
  try {
    await store.tokens.create(record, clock.now(), LOCAL_ACTOR);
  } catch (error) {
    // Another node that begins at the same moment, with the same token, has stored it.
    if (!(error instanceof EvregError) || error.code !== "conflict") throw error;
  }
  return true;
}

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

/** Verified tokens by their hash, until they expire or are revoked. The last use of a token is recorded at most once a minute. */
export class TokenCache {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #known = new LRUCache<string, CachedToken>({ max: MAX_TOKENS });
  /** Of the tokens of all that were admitted, also of those that are cached no more. */
  readonly #hashes = new WeakMap<Principal, string>();
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
    return isTokenForm(token) ? this.#find(hash) : undefined;
  }

  /** Whether a principal may still act, some time after it was admitted. One without a token always may. */
  async holds(principal: Principal): Promise<boolean> {
    const hash = this.#hashes.get(principal);
    if (hash === undefined) return true;
    const known = this.refresh() ? this.#known.get(hash) : undefined;
    const admitted = known === undefined ? await this.#find(hash) : this.#admit(known);
    return admitted !== undefined;
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

  /** Call it once the store has revoked a token: all are read again. */
  evict(): void {
    this.#revocations++;
    this.#known.clear();
    this.onRevoked();
  }

  async #find(hash: string): Promise<Principal | undefined> {
    const revocations = this.#revocations;
    const token = await this.#store.tokens.find(hash);
    // It may have been revoked while it was read.
    if (this.#revocations !== revocations) return this.#find(hash);
    if (token === undefined) return undefined;
    // Several requests may have looked for it at once, and it is one caller.
    const other = this.#known.get(hash);
    if (other !== undefined) return this.#admit(other);
    const { name, scopes, expires_at, rowid: tokenId } = token;
    const principal = { name, scopes, expires_at, tokenId };
    const known = { hash, principal, endMs: tokenEndMs(token), recordedAtMs: -Infinity };
    this.#known.set(hash, known);
    this.#hashes.set(principal, hash);
    return this.#admit(known);
  }

  #recordUse(known: CachedToken, nowMs: number): void {
    known.recordedAtMs = this.#clock.monotonicMs();
    this.#store.tokens.recordUse(known.principal.tokenId!, nowMs).catch((error: unknown) => {
      this.#logger.debug({ err: error }, "The last use of a token could not be stored.");
    });
  }
}
