import { EvregError } from "../domain/error.ts";
import type { Clock } from "./clock.ts";

export interface BudgetLimits {
  /** For all callers together. */
  readonly maxBytes: number;
  /** For the callers of one address together, unless they are on this machine. */
  readonly addressBytes: number;
  /** For the callers with one token together. */
  readonly tokenBytes: number;
  /** Callers that wait for bytes; more are refused at once. */
  readonly maxWaiting: number;
  /** Those with one token, or of one address without a token. */
  readonly tokenWaiting: number;
  /** Further bytes that only small claims get, with limits in proportion, whatever large ones hold for long. */
  readonly small?: { readonly claimBytes: number; readonly maxBytes: number };
}

export interface Caller {
  /** `undefined` for one on this machine, behind which a proxy may stand for everybody. */
  readonly address: string | undefined;
  /** The same value for each request with one token; `undefined` without one, when the address replaces it. */
  readonly token: unknown;
}

export interface ByteClaim {
  readonly bytes: number;
  readonly caller: Caller;
  /** Called when the bytes were released because the caller is too slow while others wait. */
  readonly evict: () => void;
}

interface Waiting {
  readonly claim: ByteClaim;
  readonly grant: (reservation: Reservation) => void;
}

/** Of one address, of one token, or of all. */
interface Account {
  readonly maxBytes: number;
  reservedBytes: number;
  waiting: number;
}

/** A caller is too slow when it is behind this rate by more than the allowance. */
const MIN_BYTES_PER_MS = 64;
const ALLOWANCE_MS = 5_000;
/** How often slow callers are looked for while somebody waits. */
const CHECK_EVERY_MS = 500;

/** The bytes that one request has until it releases them. */
export class Reservation {
  readonly claim: ByteClaim;
  readonly #clock: Clock;
  readonly #onRelease: (reservation: Reservation) => void;
  #dueMs = Infinity;
  #isReleased = false;

  constructor(claim: ByteClaim, clock: Clock, onRelease: (reservation: Reservation) => void) {
    this.claim = claim;
    this.#clock = clock;
    this.#onRelease = onRelease;
  }

  /** From then on its caller is too slow. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** From now on its caller has to move so many bytes. */
  startTransfer(bytes: number): void {
    this.#dueMs = this.#clock.now() + ALLOWANCE_MS + bytes / MIN_BYTES_PER_MS;
  }

  /** Its caller moved so many bytes. Being faster than the lowest rate saves up no more than the allowance. */
  transferred(bytes: number): void {
    this.#dueMs = Math.min(this.#dueMs + bytes / MIN_BYTES_PER_MS, this.#clock.now() + ALLOWANCE_MS);
  }

  endTransfer(): void {
    this.#dueMs = Infinity;
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#onRelease(this);
  }
}

/**
 * Bytes that callers share, with a limit for each address and each token. A claim larger than a limit takes all of it. While
 * callers wait, those are evicted that hold bytes and do not move them.
 */
export class ByteBudget {
  readonly #clock: Clock;
  readonly #limits: BudgetLimits;
  readonly #refusal: string;
  readonly #small: ByteBudget | undefined;
  readonly #smallBytes: number;
  readonly #all: Account;
  readonly #addresses = new Map<unknown, Account>();
  readonly #tokens = new Map<unknown, Account>();
  readonly #reservations = new Set<Reservation>();
  readonly #waiting = new Set<Waiting>();
  #cancelCheck: (() => void) | undefined;

  /** @param refusal the message for those for whom no bytes come free */
  constructor(clock: Clock, { small, ...limits }: BudgetLimits, refusal: string) {
    this.#clock = clock;
    this.#limits = limits;
    this.#refusal = refusal;
    this.#all = { maxBytes: limits.maxBytes, reservedBytes: 0, waiting: 0 };
    this.#smallBytes = small?.claimBytes ?? 0;
    if (small === undefined) return;
    const part = small.maxBytes / limits.maxBytes;
    const shares = { addressBytes: limits.addressBytes * part, tokenBytes: limits.tokenBytes * part };
    this.#small = new ByteBudget(clock, { ...limits, ...shares, maxBytes: small.maxBytes }, refusal);
  }

  /** Reserves bytes if they are free, also before those who wait: a small claim need not wait behind a large one. */
  tryReserve(claim: ByteClaim): Reservation | undefined {
    return this.#tryReserve(claim) ?? this.#smallFor(claim)?.tryReserve(claim);
  }

  /**
   * Reserves bytes once they are free. Those who came first go first, unless only their own limit stops them.
   * @param gone aborted when nobody wants them any more; its reason is thrown then
   * @throws EvregError `unavailable` when they are not free in time, or too many wait
   */
  reserve(claim: ByteClaim, waitMs: number, gone?: AbortSignal): Promise<Reservation> {
    const reservation = this.tryReserve(claim);
    if (reservation !== undefined) return Promise.resolve(reservation);
    const budget: ByteBudget = this.#smallFor(claim) ?? this;
    return budget.#wait(claim, waitMs, gone);
  }

  refused(): EvregError {
    return new EvregError("unavailable", this.#refusal);
  }

  #smallFor({ bytes }: ByteClaim): ByteBudget | undefined {
    return bytes <= this.#smallBytes ? this.#small : undefined;
  }

  #tryReserve(claim: ByteClaim): Reservation | undefined {
    const accounts = this.#accountsOf(claim.caller);
    if (accounts.some((account) => isFull(account, claim.bytes))) {
      this.#dropAccounts(claim.caller);
      return undefined;
    }
    for (const account of accounts) account.reservedBytes += Math.min(claim.bytes, account.maxBytes);
    const reservation = new Reservation(claim, this.#clock, (released) => this.#release(released));
    this.#reservations.add(reservation);
    return reservation;
  }

  #wait(claim: ByteClaim, waitMs: number, gone: AbortSignal | undefined): Promise<Reservation> {
    const accounts = this.#accountsOf(claim.caller);
    const [all, own] = accounts;
    const { maxWaiting, tokenWaiting } = this.#limits;
    const refusal = (): unknown => (gone?.aborted === true ? gone.reason : this.refused());
    if (gone?.aborted === true || all.waiting >= maxWaiting || own.waiting >= tokenWaiting) {
      this.#dropAccounts(claim.caller);
      return Promise.reject(refusal());
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        cancelTimer();
        gone?.removeEventListener("abort", refuse);
        this.#waiting.delete(waiting);
        for (const account of accounts) account.waiting -= 1;
        if (this.#waiting.size > 0) return;
        this.#cancelCheck?.();
        this.#cancelCheck = undefined;
      };
      const waiting: Waiting = {
        claim,
        grant: (reservation) => {
          leave();
          resolve(reservation);
        },
      };
      const refuse = (): void => {
        leave();
        this.#dropAccounts(claim.caller);
        reject(refusal());
      };
      for (const account of accounts) account.waiting += 1;
      this.#waiting.add(waiting);
      gone?.addEventListener("abort", refuse);
      const cancelTimer = this.#clock.setTimer(refuse, waitMs);
      this.#startChecks();
    });
  }

  #release(reservation: Reservation): void {
    const { bytes, caller } = reservation.claim;
    for (const account of this.#accountsOf(caller))
      account.reservedBytes -= Math.min(bytes, account.maxBytes);
    this.#reservations.delete(reservation);
    this.#dropAccounts(caller);
    for (const { claim, grant } of this.#waiting) {
      const next = this.#tryReserve(claim);
      if (next !== undefined) grant(next);
    }
  }

  /** Looks for slow callers for as long as somebody waits. */
  #startChecks(): void {
    this.#cancelCheck ??= this.#clock.setTimer(() => {
      this.#cancelCheck = undefined;
      for (const waiting of this.#waiting) this.#evictFor(waiting);
      if (this.#waiting.size > 0) this.#startChecks();
    }, CHECK_EVERY_MS);
  }

  /** Evicts slow callers that hold what this one waits for, until it has its bytes, which a release grants. */
  #evictFor(waiting: Waiting): void {
    const { bytes, caller } = waiting.claim;
    const accounts = this.#accountsOf(caller);
    const nowMs = this.#clock.now();
    for (const reservation of this.#reservations) {
      if (!this.#waiting.has(waiting)) return;
      if (reservation.dueMs > nowMs) continue;
      const others = this.#accountsOf(reservation.claim.caller);
      if (!accounts.some((account) => isFull(account, bytes) && others.includes(account))) continue;
      reservation.release();
      reservation.claim.evict();
    }
  }

  /**
   * The account of all, that of the token, and that of the address. Callers on this machine without a token share one: they
   * may be everybody behind a proxy.
   */
  #accountsOf({ address, token }: Caller): [Account, Account, ...Account[]] {
    const ofToken = (): Account => accountOf(this.#tokens, token, this.#limits.tokenBytes);
    if (address === undefined) return [this.#all, ofToken()];
    const ofAddress = accountOf(this.#addresses, address, this.#limits.addressBytes);
    return token === undefined ? [this.#all, ofAddress] : [this.#all, ofToken(), ofAddress];
  }

  #dropAccounts({ address, token }: Caller): void {
    dropEmpty(this.#tokens, token);
    if (address !== undefined) dropEmpty(this.#addresses, address);
  }
}

function isFull({ reservedBytes, maxBytes }: Account, bytes: number): boolean {
  return reservedBytes + Math.min(bytes, maxBytes) > maxBytes;
}

function accountOf(accounts: Map<unknown, Account>, key: unknown, maxBytes: number): Account {
  let account = accounts.get(key);
  if (account === undefined) accounts.set(key, (account = { maxBytes, reservedBytes: 0, waiting: 0 }));
  return account;
}

function dropEmpty(accounts: Map<unknown, Account>, key: unknown): void {
  const account = accounts.get(key);
  if (account?.reservedBytes === 0 && account.waiting === 0) accounts.delete(key);
}
