import { EvregError } from "../domain/error.ts";
import type { Clock } from "./clock.ts";

export interface BudgetLimits {
  /** What all take together. */
  readonly maxBytes: number;
  /** What the callers of one address take together, unless they are on this machine. */
  readonly addressBytes: number;
  /** What the callers with one token take together. */
  readonly tokenBytes: number;
  /** Callers that wait for bytes; more are refused at once. */
  readonly maxWaiting: number;
  /** Those of one token, or of one address without. */
  readonly tokenWaiting: number;
}

export interface ReserveLimits {
  /** So many bytes at a time are small. */
  readonly smallBytes: number;
  /** What is kept for the small ones. */
  readonly reserveBytes: number;
}

/** Who takes bytes. */
export interface Caller {
  /** `undefined` for one on this machine, behind which a proxy may stand for everybody. */
  readonly address: string | undefined;
  /** Anything that is the same for each request with one token; `undefined` without one, where the address stands for it. */
  readonly token: unknown;
}

export interface Taking {
  readonly bytes: number;
  readonly caller: Caller;
  /** Ends what the bytes are for, which were just taken back: its caller is too slow while others wait. */
  readonly evict: () => void;
}

interface Waiting {
  readonly taking: Taking;
  readonly grant: (share: Share) => void;
}

/** What one address, one token, or all have of the budget. */
interface Account {
  readonly maxBytes: number;
  takenBytes: number;
  waiting: number;
}

/** A caller is too slow that has not moved its bytes at this rate, by more than the patience. */
const LEAST_BYTES_PER_MS = 64;
const PATIENCE_MS = 5_000;
/** How often the slow are looked for while somebody waits. */
const CHECK_EVERY_MS = 500;

/** The bytes that one request has, until it gives them back. */
export class Share {
  readonly taking: Taking;
  readonly #clock: Clock;
  readonly #release: (share: Share) => void;
  /** When its caller will have been too slow. */
  #dueMs = Infinity;
  #over = false;

  constructor(taking: Taking, clock: Clock, release: (share: Share) => void) {
    this.taking = taking;
    this.#clock = clock;
    this.#release = release;
  }

  get dueMs(): number {
    return this.#dueMs;
  }

  /** It is its caller's turn from now on, to move so many bytes. */
  expect(bytes: number): void {
    this.#dueMs = this.#clock.now() + PATIENCE_MS + bytes / LEAST_BYTES_PER_MS;
  }

  /** Its caller moved so many bytes. What it is ahead of the least rate does not count for longer than the patience. */
  moved(bytes: number): void {
    this.#dueMs = Math.min(this.#dueMs + bytes / LEAST_BYTES_PER_MS, this.#clock.now() + PATIENCE_MS);
  }

  /** It is not its caller's turn. */
  settle(): void {
    this.#dueMs = Infinity;
  }

  /** Safe to call twice. */
  giveBack(): void {
    if (this.#over) return;
    this.#over = true;
    this.#release(this);
  }
}

/**
 * So many bytes and no more, shared by all who take of them, with a share for each address and each token. What is larger
 * than a share takes the whole of it. Whoever waits may have those evicted that hold bytes and do not move them.
 */
export class ByteBudget {
  readonly #clock: Clock;
  readonly #limits: BudgetLimits;
  readonly #refusal: string;
  readonly #all: Account;
  readonly #addresses = new Map<unknown, Account>();
  readonly #tokens = new Map<unknown, Account>();
  readonly #shares = new Set<Share>();
  readonly #waiting = new Set<Waiting>();
  #isChecking = false;
  #cancelCheck = (): void => {};

  /** @param refusal what those are told for whom no bytes come free */
  constructor(clock: Clock, limits: BudgetLimits, refusal: string) {
    this.#clock = clock;
    this.#limits = limits;
    this.#refusal = refusal;
    this.#all = { maxBytes: limits.maxBytes, takenBytes: 0, waiting: 0 };
  }

  /** Takes them if they are free, also past those who wait: a small share need not wait behind a large one. */
  tryTake(taking: Taking): Share | undefined {
    const accounts = this.#accountsOf(taking.caller);
    if (accounts.some((account) => isFull(account, taking.bytes))) {
      this.#drop(taking.caller);
      return undefined;
    }
    for (const account of accounts) account.takenBytes += Math.min(taking.bytes, account.maxBytes);
    const share = new Share(taking, this.#clock, (over) => this.#takeBack(over));
    this.#shares.add(share);
    return share;
  }

  /**
   * Takes them once they are free; those who came first go first, but for those whom only their own share holds up.
   * `unavailable` when they do not come free in time, or too many wait already.
   * @param gone aborted when nobody wants them any more; its reason is what is thrown then
   */
  take(taking: Taking, waitMs: number, gone?: AbortSignal): Promise<Share> {
    const share = this.tryTake(taking);
    if (share !== undefined) return Promise.resolve(share);
    const accounts = this.#accountsOf(taking.caller);
    const [all, own] = accounts;
    const { maxWaiting, tokenWaiting } = this.#limits;
    if (gone?.aborted === true || all.waiting >= maxWaiting || own.waiting >= tokenWaiting) {
      this.#drop(taking.caller);
      return Promise.reject(gone?.aborted === true ? gone.reason : this.refused());
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        cancelTimer();
        gone?.removeEventListener("abort", refuse);
        this.#waiting.delete(waiting);
        for (const account of accounts) account.waiting -= 1;
        if (this.#waiting.size === 0) this.#cancelCheck();
      };
      const waiting: Waiting = {
        taking,
        grant: (granted) => {
          leave();
          resolve(granted);
        },
      };
      const refuse = (): void => {
        leave();
        this.#drop(taking.caller);
        reject(gone?.aborted === true ? gone.reason : this.refused());
      };
      for (const account of accounts) account.waiting += 1;
      this.#waiting.add(waiting);
      gone?.addEventListener("abort", refuse);
      const cancelTimer = this.#clock.setTimer(refuse, waitMs);
      this.#check();
    });
  }

  refused(): EvregError {
    return new EvregError("unavailable", this.#refusal);
  }

  #takeBack(share: Share): void {
    const { bytes, caller } = share.taking;
    for (const account of this.#accountsOf(caller)) account.takenBytes -= Math.min(bytes, account.maxBytes);
    this.#shares.delete(share);
    this.#drop(caller);
    this.#grant();
  }

  #grant(): void {
    for (const { taking, grant } of this.#waiting) {
      const share = this.tryTake(taking);
      if (share !== undefined) grant(share);
    }
  }

  /** Looks for the slow for as long as somebody waits. */
  #check(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const cancelTimer = this.#clock.setTimer(() => {
      this.#isChecking = false;
      for (const waiting of this.#waiting) this.#makeRoom(waiting);
      if (this.#waiting.size > 0) this.#check();
    }, CHECK_EVERY_MS);
    this.#cancelCheck = () => {
      cancelTimer();
      this.#isChecking = false;
    };
  }

  /** Evicts the slow that hold what this one waits for, until it has its bytes: taking back gives them to it. */
  #makeRoom(waiting: Waiting): void {
    const { bytes, caller } = waiting.taking;
    const accounts = this.#accountsOf(caller);
    const nowMs = this.#clock.now();
    for (const share of this.#shares) {
      if (!this.#waiting.has(waiting)) return;
      if (share.dueMs > nowMs) continue;
      const others = this.#accountsOf(share.taking.caller);
      if (!accounts.some((account) => isFull(account, bytes) && others.includes(account))) continue;
      share.giveBack();
      share.taking.evict();
    }
  }

  /**
   * Of all, of the token if there is one, and of the address if it counts. Those on this machine without a token have one
   * account together: they may be everybody behind a proxy, whom nothing tells apart.
   */
  #accountsOf({ address, token }: Caller): [Account, Account, ...Account[]] {
    const ofToken = (): Account => accountOf(this.#tokens, token, this.#limits.tokenBytes);
    if (address === undefined) return [this.#all, ofToken()];
    const ofAddress = accountOf(this.#addresses, address, this.#limits.addressBytes);
    return token === undefined ? [this.#all, ofAddress] : [this.#all, ofToken(), ofAddress];
  }

  /** Forgets the accounts of a caller that have nothing in them. */
  #drop({ address, token }: Caller): void {
    dropEmpty(this.#tokens, token);
    if (address !== undefined) dropEmpty(this.#addresses, address);
  }
}

function isFull({ takenBytes, maxBytes }: Account, bytes: number): boolean {
  return takenBytes + Math.min(bytes, maxBytes) > maxBytes;
}

function accountOf(accounts: Map<unknown, Account>, key: unknown, maxBytes: number): Account {
  let account = accounts.get(key);
  if (account === undefined) accounts.set(key, (account = { maxBytes, takenBytes: 0, waiting: 0 }));
  return account;
}

function dropEmpty(accounts: Map<unknown, Account>, key: unknown): void {
  const account = accounts.get(key);
  if (account?.takenBytes === 0 && account.waiting === 0) accounts.delete(key);
}

/**
 * A budget with a reserve for what is small, so that it finds room whatever large shares are held for long: a small one
 * moves at the least rate within moments, or is evicted.
 */
export class ReservingBudget {
  readonly #budget: ByteBudget;
  readonly #reserve: ByteBudget;
  readonly #smallBytes: number;

  /** @param refusal as of `ByteBudget` */
  constructor(clock: Clock, limits: BudgetLimits & ReserveLimits, refusal: string) {
    const { maxBytes, addressBytes, tokenBytes, smallBytes, reserveBytes } = limits;
    const part = reserveBytes / maxBytes;
    this.#budget = new ByteBudget(clock, limits, refusal);
    const shares = { addressBytes: addressBytes * part, tokenBytes: tokenBytes * part };
    this.#reserve = new ByteBudget(clock, { ...limits, ...shares, maxBytes: reserveBytes }, refusal);
    this.#smallBytes = smallBytes;
  }

  tryTake(taking: Taking): Share | undefined {
    const share = this.#budget.tryTake(taking);
    return share ?? (taking.bytes <= this.#smallBytes ? this.#reserve.tryTake(taking) : undefined);
  }

  take(taking: Taking, waitMs: number, gone?: AbortSignal): Promise<Share> {
    const share = this.tryTake(taking);
    if (share !== undefined) return Promise.resolve(share);
    const waitsFor = taking.bytes <= this.#smallBytes ? this.#reserve : this.#budget;
    return waitsFor.take(taking, waitMs, gone);
  }

  refused(): EvregError {
    return this.#budget.refused();
  }
}
