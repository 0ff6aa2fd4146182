import { EvregError } from "../domain/error.ts";
import type { Clock } from "./clock.ts";
import { type Caller, callerKey, Shares } from "./shares.ts";

export interface BudgetLimits {
  /** For all callers together, each of which has a share. */
  readonly maxBytes: number;
  /** Callers that wait for bytes, shared likewise; more are refused at once. */
  readonly maxWaiting: number;
  /** Further bytes that only small claims get, whatever large ones hold for long. */
  readonly small?: { readonly claimBytes: number; readonly maxBytes: number };
}

export interface ByteClaim {
  readonly bytes: number;
  readonly caller: Caller;
  /** Called when the bytes were released because the caller is too slow while others wait. */
  readonly evict: () => void;
}

interface Waiting {
  readonly claim: ByteClaim;
  readonly sinceMs: number;
  readonly grant: (reservation: Reservation) => void;
}

/** A caller is too slow when it is behind this rate by more than the allowance. */
const MIN_BYTES_PER_MS = 64;
const ALLOWANCE_MS = 5_000;
/** How often slow callers are looked for while somebody waits. */
const CHECK_EVERY_MS = 500;
/** Claims that fit pass a larger one that does not, until it has waited so long. */
const OVERTAKEN_MS = 1_000;
const MIB = 1024 * 1024;

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
    this.#dueMs = this.#clock.monotonicMs() + ALLOWANCE_MS + bytes / MIN_BYTES_PER_MS;
  }

  /** Its caller moved so many bytes. Being faster than the lowest rate saves up no more than the allowance. */
  transferred(bytes: number): void {
    this.#dueMs = Math.min(this.#dueMs + bytes / MIN_BYTES_PER_MS, this.#clock.monotonicMs() + ALLOWANCE_MS);
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

function inMib(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}

/**
 * Bytes that callers share, see `Shares`. Those who wait are served in rotation over callers. While callers wait, those are
 * evicted that hold bytes and do not move them.
 */
export class ByteBudget {
  readonly #clock: Clock;
  readonly #refusal: string;
  readonly #small: ByteBudget | undefined;
  readonly #smallBytes: number;
  readonly #shares: Shares;
  readonly #places: Shares;
  readonly #reservations = new Set<Reservation>();
  /** By caller, the one whose turn is next first. No set is empty. */
  readonly #waiting = new Map<unknown, Set<Waiting>>();
  #cancelCheck: (() => void) | undefined;

  /** @param refusal the message for those for whom no bytes come free */
  constructor(clock: Clock, { small, maxBytes, maxWaiting }: BudgetLimits, refusal: string) {
    this.#clock = clock;
    this.#refusal = refusal;
    this.#shares = new Shares(maxBytes);
    this.#places = new Shares(maxWaiting);
    this.#smallBytes = small?.claimBytes ?? 0;
    if (small === undefined) return;
    this.#small = new ByteBudget(clock, { maxBytes: small.maxBytes, maxWaiting }, refusal);
  }

  /** Reserves bytes if they are free, also before larger claims that wait, but not for long. */
  tryReserve(claim: ByteClaim): Reservation | undefined {
    const isBarred = [...this.#waiting.values()].some((own) => this.#isNext(own));
    return (isBarred ? undefined : this.#tryReserve(claim)) ?? this.#smallFor(claim)?.tryReserve(claim);
  }

  /**
   * Reserves bytes once they are free.
   * @param gone aborted when nobody wants them any more; its reason is thrown then
   * @throws EvregError `unavailable` when they are not free in time, or too many wait
   */
  reserve(claim: ByteClaim, waitMs: number, gone?: AbortSignal): Promise<Reservation> {
    const reservation = this.tryReserve(claim);
    if (reservation !== undefined) return Promise.resolve(reservation);
    const budget: ByteBudget = this.#smallFor(claim) ?? this;
    return budget.#wait(claim, waitMs, gone);
  }

  refused({ caller }: Pick<ByteClaim, "caller">): EvregError {
    const held = this.#shares.heldBy(callerKey(caller));
    const others = this.#shares.size - this.#shares.free - held;
    const share =
      held === 0
        ? ""
        : ` Your other requests hold ${inMib(held)} MiB of ${inMib(this.#shares.size)}, and those of others ${inMib(others)}: send fewer at once.`;
    return new EvregError("unavailable", `${this.#refusal}${share}`);
  }

  #smallFor({ bytes }: ByteClaim): ByteBudget | undefined {
    return bytes <= this.#smallBytes ? this.#small : undefined;
  }

  #tryReserve(claim: ByteClaim): Reservation | undefined {
    if (!this.#shares.tryTake(callerKey(claim.caller), claim.bytes)) return undefined;
    const reservation = new Reservation(claim, this.#clock, (released) => this.#release(released));
    this.#reservations.add(reservation);
    return reservation;
  }

  /** Whether nothing goes to others before the first of these: it has waited long, and its caller holds nothing. */
  #isNext([first]: Iterable<Waiting>): boolean {
    if (first === undefined || this.#shares.heldBy(callerKey(first.claim.caller)) > 0) return false;
    return Math.abs(this.#clock.monotonicMs() - first.sinceMs) >= OVERTAKEN_MS;
  }

  #wait(claim: ByteClaim, waitMs: number, gone: AbortSignal | undefined): Promise<Reservation> {
    const key = callerKey(claim.caller);
    const refusal = (): unknown => (gone?.aborted === true ? gone.reason : this.refused(claim));
    if (gone?.aborted === true || !this.#places.tryTake(key)) return Promise.reject(refusal());
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        cancelTimer();
        gone?.removeEventListener("abort", refuse);
        this.#removeWaiting(key, waiting);
        this.#places.release(key);
        if (this.#waiting.size > 0) return;
        this.#cancelCheck?.();
        this.#cancelCheck = undefined;
      };
      const waiting: Waiting = {
        claim,
        sinceMs: this.#clock.monotonicMs(),
        grant: (reservation) => {
          leave();
          resolve(reservation);
        },
      };
      const refuse = (): void => {
        leave();
        reject(refusal());
        // It may have barred others.
        this.#serve();
      };
      const own = this.#waiting.get(key);
      if (own === undefined) this.#waiting.set(key, new Set([waiting]));
      else own.add(waiting);
      gone?.addEventListener("abort", refuse);
      const cancelTimer = this.#clock.setTimer(refuse, waitMs);
      this.#startChecks();
    });
  }

  #removeWaiting(key: unknown, waiting: Waiting): void {
    const own = this.#waiting.get(key);
    if (own?.delete(waiting) === true && own.size === 0) this.#waiting.delete(key);
  }

  #release(reservation: Reservation): void {
    const { bytes, caller } = reservation.claim;
    this.#shares.release(callerKey(caller), bytes);
    this.#reservations.delete(reservation);
    this.#serve();
  }

  /** Grants what can be granted, one claim of each caller in turn. */
  #serve(): void {
    for (const [key, own] of this.#waiting) {
      const [first] = own;
      const reservation = this.#tryReserve(first!.claim);
      if (reservation !== undefined) {
        first!.grant(reservation);
        // Behind all others, if it has more; then it comes again in this loop.
        if (this.#waiting.delete(key)) this.#waiting.set(key, own);
      } else if (this.#isNext(own)) return;
    }
  }

  /** Looks for slow callers for as long as somebody waits. */
  #startChecks(): void {
    this.#cancelCheck ??= this.#clock.setTimer(() => {
      this.#cancelCheck = undefined;
      for (const own of this.#waiting.values()) for (const waiting of own) this.#evictFor(waiting, own);
      if (this.#waiting.size > 0) this.#startChecks();
    }, CHECK_EVERY_MS);
  }

  /** Evicts slow callers until this one has its bytes, which a release grants: for one that holds some, only itself. */
  #evictFor(waiting: Waiting, own: ReadonlySet<Waiting>): void {
    const key = callerKey(waiting.claim.caller);
    const nowMs = this.#clock.monotonicMs();
    for (const reservation of this.#reservations) {
      if (!own.has(waiting)) return;
      if (reservation.dueMs > nowMs) continue;
      const isOwn = callerKey(reservation.claim.caller) === key;
      if (this.#shares.heldBy(key) > 0 && !isOwn) continue;
      reservation.release();
      reservation.claim.evict();
    }
  }
}
