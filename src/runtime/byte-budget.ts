import { EvregError } from "../domain/error.ts";
import type { Clock } from "./clock.ts";
import { FairQueue } from "./fair-queue.ts";
import { type ShareCaller, callerKey, Shares } from "./shares.ts";
import { TimeLimit } from "./time-limit.ts";

export interface BudgetLimits {
  /** The bytes for all callers together, each of which has a share. */
  readonly maxBytes: number;
  /** Callers that wait for bytes, shared likewise; more are refused at once. */
  readonly maxWaiting: number;
  /** Further bytes that only small claims get, whatever large ones hold for long. */
  readonly small?: { readonly claimBytes: number; readonly maxBytes: number };
}

export interface ByteClaim {
  readonly bytes: number;
  readonly caller: ShareCaller;
  /** Called when the bytes were released because the caller is too slow while others wait. */
  readonly evict: () => void;
}

interface Waiting {
  readonly claim: ByteClaim;
  readonly grant: (reservation: Reservation) => void;
  isGranted: boolean;
}

/** A caller is too slow when it is behind this rate by more than the allowance. */
const MIN_BYTES_PER_MS = 64;
const ALLOWANCE_MS = 5_000;
/** How often slow callers are looked for while somebody waits. */
const CHECK_EVERY_MS = 500;
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

  /** The caller is too slow from then on. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** The caller has to move so many bytes from now on. */
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
  readonly #waiting = new FairQueue<Waiting>();
  #isChecking = false;

  /** @param refusal the message for those for whom no bytes come free */
  constructor(clock: Clock, { small, maxBytes, maxWaiting }: BudgetLimits, refusal: string) {
    this.#clock = clock;
    this.#refusal = refusal;
    this.#shares = new Shares(maxBytes);
    this.#places = new Shares(maxWaiting);
    this.#smallBytes = small?.claimBytes ?? 0;
    this.#small = small && new ByteBudget(clock, { maxBytes: small.maxBytes, maxWaiting }, refusal);
  }

  /** Reserves bytes if they are free and nobody who holds nothing waits for them. */
  tryReserve(claim: ByteClaim): Reservation | undefined {
    const isTaken = this.#waiting.heads().some((waiting) => this.#holdsNothing(waiting.claim));
    return (isTaken ? undefined : this.#tryReserve(claim)) ?? this.#smallFor(claim)?.tryReserve(claim);
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

  #holdsNothing({ caller }: ByteClaim): boolean {
    return this.#shares.heldBy(callerKey(caller)) === 0;
  }

  #tryReserve(claim: ByteClaim): Reservation | undefined {
    if (!this.#shares.tryTake(callerKey(claim.caller), claim.bytes)) return undefined;
    const reservation = new Reservation(claim, this.#clock, (released) => {
      this.#shares.release(callerKey(claim.caller), claim.bytes);
      this.#reservations.delete(released);
      this.#serve();
    });
    this.#reservations.add(reservation);
    return reservation;
  }

  #wait(claim: ByteClaim, waitMs: number, gone: AbortSignal | undefined): Promise<Reservation> {
    const key = callerKey(claim.caller);
    if (gone?.aborted === true) return Promise.reject(gone.reason as Error);
    if (!this.#places.tryTake(key)) return Promise.reject(this.refused(claim));
    return new Promise((resolve, reject) => {
      const limit = new TimeLimit(this.#clock, waitMs, new Error("The time to wait is over."), gone);
      const leave = (): void => {
        limit.end();
        limit.signal.removeEventListener("abort", refuse);
        leaveQueue();
        this.#places.release(key);
      };
      const refuse = (): void => {
        leave();
        reject(gone?.aborted === true ? (gone.reason as Error) : this.refused(claim));
        // It may have been in the way of others.
        this.#serve();
      };
      const waiting: Waiting = {
        claim,
        isGranted: false,
        grant: (reservation) => {
          waiting.isGranted = true;
          leave();
          resolve(reservation);
        },
      };
      const leaveQueue = this.#waiting.push(key, waiting);
      limit.signal.addEventListener("abort", refuse);
      this.#startChecks();
    });
  }

  /** Grants what can be granted, one claim of each caller in turn. */
  #serve(): void {
    while (this.#grantNext());
  }

  /** A caller that holds some may wait for itself alone. Nothing passes the claim of one that holds nothing. */
  #grantNext(): boolean {
    for (const { claim, grant } of this.#waiting.heads()) {
      const reservation = this.#tryReserve(claim);
      if (reservation !== undefined) {
        grant(reservation);
        this.#waiting.endTurn(callerKey(claim.caller));
        return true;
      }
      if (this.#holdsNothing(claim)) return false;
    }
    return false;
  }

  /** Looks for slow callers for as long as somebody waits. */
  #startChecks(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    this.#clock.setTimer(() => {
      this.#isChecking = false;
      for (const waiting of this.#waiting.heads()) this.#evictFor(waiting);
      if (!this.#waiting.isEmpty) this.#startChecks();
    }, CHECK_EVERY_MS);
  }

  /** Evicts slow callers until this one has its bytes, which a release grants: for one that holds some, only itself. */
  #evictFor(waiting: Waiting): void {
    const key = callerKey(waiting.claim.caller);
    const nowMs = this.#clock.monotonicMs();
    for (const reservation of this.#reservations) {
      if (waiting.isGranted) return;
      const isOwn = callerKey(reservation.claim.caller) === key;
      if (reservation.dueMs > nowMs || !(isOwn || this.#holdsNothing(waiting.claim))) continue;
      reservation.release();
      reservation.claim.evict();
    }
  }
}
