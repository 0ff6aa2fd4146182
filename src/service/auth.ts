import { LRUCache } from "lru-cache";
import type { Actor } from "../domain/audit.ts";
import { EvregError } from "../domain/error.ts";
import { parseIsoTime } from "../domain/formats.ts";
import {
  hashToken,
  isTokenForm,
  parseScope,
  type Principal,
  type ScopeName,
  TOKEN_LENGTH,
} from "../domain/token.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { TokenStore } from "../store/store.ts";

/** `true` for every application, else those it is limited to. */
type Reach = true | Set<string>;

/** Scopes named in a message. */
const MAX_NAMED = 3;

/**
 * What one principal may do. `admin` holds every scope, and `write` holds `listen`, a limited one for its application. What a principal may not read
 * does not exist for it, so that nobody can probe for it; to change or publish it is `forbidden`.
 */
export class Access {
  readonly principal: Principal;
  /** The same value whenever the same token is used, or one that it signed in; what it holds of what callers share counts under it. */
  readonly caller: unknown;
  /** What is kept of who makes a change. */
  readonly actor: Actor;
  readonly #reach = new Map<ScopeName, Reach>();

  /** @param address that it asks from, if it asks over a network */
  constructor(principal: Principal, address?: string) {
    this.principal = principal;
    this.caller = principal.callerId ?? principal;
    this.actor = { name: principal.name, tokenId: principal.tokenId ?? null, address: address ?? null };
    for (const scope of principal.scopes) {
      const parsed = parseScope(scope);
      // A scope of a later version that is not known here gives nothing.
      if (parsed === undefined) continue;
      const { name, application } = parsed;
      const known = this.#reach.get(name);
      if (application === undefined || known === true) this.#reach.set(name, true);
      else if (known === undefined) this.#reach.set(name, new Set([application]));
      else known.add(application);
    }
  }

  /** @param application left out: for every application */
  allows(scope: ScopeName, application?: string): boolean {
    return holders(scope).some((name) => this.#holds(name, application));
  }

  /** Whether it holds the scope for anything at all. */
  allowsSome(scope: ScopeName): boolean {
    return holders(scope).some((name) => this.#reach.has(name));
  }

  /** @throws `forbidden`, naming the action if given, unless the scope is held for that application */
  require(scope: ScopeName, application?: string, action?: string): void {
    if (!this.allows(scope, application)) throw this.#forbidden(scope, application, action);
  }

  /** As `require`, for an application that the caller has named itself. */
  requireGiven(scope: ScopeName, application: string): void {
    if (!this.allows(scope, application)) throw this.#forbidden(scope, application, undefined, true);
  }

  /** @throws `forbidden`, naming the action if given, which need not exist, unless the scope is held for anything at all */
  requireSome(scope: ScopeName, action?: string): void {
    if (!this.allowsSome(scope)) throw this.#forbidden(scope, undefined, action);
  }

  /**
   * The applications that may be listed, `undefined` for all. @throws `forbidden` when there are none
   * @param application only that one, if it may be listed
   */
  readable(application?: string): readonly string[] | undefined {
    this.requireSome("read");
    if (application !== undefined) return this.allows("read", application) ? [application] : [];
    const applications = new Set<string>();
    for (const scope of ["read", "admin"] as const) {
      const reach = this.#reach.get(scope);
      if (reach === true) return undefined;
      for (const held of reach ?? []) applications.add(held);
    }
    return [...applications];
  }

  #holds(scope: ScopeName, application: string | undefined): boolean {
    const reach = this.#reach.get(scope);
    return reach === true || (application !== undefined && reach?.has(application) === true);
  }

  #forbidden(scope: ScopeName, application?: string, action?: string, isGiven = false): EvregError {
    // The name of an application that may not be read is not disclosed.
    const named = application !== undefined && (isGiven || this.allows("read", application));
    const needed = named ? `${scope}:${application}` : scope;
    let where = "";
    if (application !== undefined && !named) where = " for the application it belongs to";
    else if (application === undefined && this.allowsSome(scope)) where = " not limited to an application";
    const what = action === undefined ? "This" : `The action ${action}`;
    return new EvregError(
      "forbidden",
      `${what} needs the scope ${needed}${where}; ${JSON.stringify(this.principal.name)} ${this.#held()}. Use a token that holds it.`,
      { scope: needed },
    );
  }

  #held(): string {
    const { scopes } = this.principal;
    if (scopes.length === 0) return "holds none";
    const more = scopes.length - MAX_NAMED;
    return `holds only ${scopes.slice(0, MAX_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  }
}

const LISTENERS = ["listen", "write", "admin"] as const;

/** The scopes that hold this one. */
function holders(scope: ScopeName): readonly ScopeName[] {
  return scope === "listen" ? LISTENERS : [scope, "admin"];
}

interface CachedToken {
  readonly rowid: number;
  readonly hash: string;
  /** The same object while the token is cached, so that others can keep state by it. */
  readonly principal: Principal;
  readonly expiresAtMs: number;
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
  readonly #store: Pick<TokenStore, "find" | "list" | "recordUses">;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #known = new LRUCache<string, CachedToken>({
    max: MAX_TOKENS,
    dispose: ({ principal }) => this.#byPrincipal.delete(principal),
  });
  /** The same ones. */
  readonly #byPrincipal = new WeakMap<Principal, CachedToken>();
  readonly #uses = new Map<number, number>();
  #flushPlanned = false;
  #revocations = 0;
  /** Called after a token was revoked: what was begun with it may have to end. */
  onRevoked: () => void = () => {};

  constructor(store: Pick<TokenStore, "find" | "list" | "recordUses">, clock: Clock, logger: Logger) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** `undefined` for a token that is ill-formed, unknown, expired or revoked. */
  authenticate(token: string): Principal | undefined | Promise<Principal | undefined> {
    if (token.length !== TOKEN_LENGTH) return undefined;
    const hash = hashToken(token);
    const known = this.#known.get(hash);
    if (known !== undefined) return this.#admit(known);
    // Anything else was not made by evreg, so that the store need not be read.
    if (!isTokenForm(token)) return undefined;
    return this.#find(hash).then((found) => (found === undefined ? undefined : this.#admit(found)));
  }

  /** Uses the token of a principal again, without the token. `false` unless it is certain to hold still. */
  readmit(principal: Principal): boolean {
    const known = this.#byPrincipal.get(principal);
    return known !== undefined && this.#admit(known) !== undefined;
  }

  /** Whether a principal may still act, some time after it was admitted. One without a token always may. */
  async holds(principal: Principal): Promise<boolean> {
    const { tokenId } = principal;
    if (tokenId === undefined || this.readmit(principal)) return true;
    // It may have made room for others, or have expired.
    const token = (await this.#store.list()).find(({ rowid }) => rowid === tokenId);
    return token !== undefined && (parseIsoTime(token.expires_at ?? "") ?? Infinity) > this.#clock.now();
  }

  #admit(known: CachedToken): Principal | undefined {
    const nowMs = this.#clock.now();
    if (known.expiresAtMs <= nowMs) {
      this.#known.delete(known.hash);
      return undefined;
    }
    if (this.#clock.monotonicMs() - known.recordedAtMs >= RECORD_EVERY_MS) this.#recordUse(known, nowMs);
    return known.principal;
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
      await this.#store.recordUses(uses);
    } catch (error) {
      this.#logger.debug({ err: error }, "The last uses of tokens could not be stored.");
    }
  }

  async #find(hash: string): Promise<CachedToken | undefined> {
    const revocations = this.#revocations;
    const token = await this.#store.find(hash);
    // It may have been revoked while it was read.
    if (this.#revocations !== revocations) return this.#find(hash);
    if (token === undefined) return undefined;
    // Several requests may have looked for it at once, and it is one caller.
    const other = this.#known.get(hash);
    if (other !== undefined) return other;
    const known: CachedToken = {
      rowid: token.rowid,
      hash,
      principal: {
        name: token.name,
        scopes: token.scopes,
        expires_at: token.expires_at,
        tokenId: token.rowid,
        callerId: token.callerId,
      },
      expiresAtMs: token.expires_at === null ? Infinity : (parseIsoTime(token.expires_at) ?? 0),
      recordedAtMs: -Infinity,
    };
    this.#known.set(hash, known);
    this.#byPrincipal.set(known.principal, known);
    return known;
  }

  #recordUse(known: CachedToken, nowMs: number): void {
    known.recordedAtMs = this.#clock.monotonicMs();
    this.#uses.set(known.rowid, nowMs);
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    this.#clock.setTimer(() => {
      this.#flushPlanned = false;
      void this.flush();
    }, FLUSH_AFTER_MS);
  }
}
