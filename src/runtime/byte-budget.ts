import { EvregError } from "../domain/error.ts";
import type { Clock } from "./clock.ts";
import { FairQueue, Shares } from "./shares.ts";

export interface ByteClaim {
  readonly bytes: number;
  /** One value for all requests of one caller. */
  readonly caller: unknown;
}

interface Waiting {
  readonly claim: ByteClaim;
  readonly grant: (reservation: Reservation) => void;
}

/** The bytes that one request has until it releases them. */
export interface Reservation {
  /** Gives back all but so many, which are no more than it has. */
  keep(bytes: number): void;
  /** Safe to call twice. */
  release(): void;
}

/** Bytes that callers share, see `Shares`. Those who wait are served in rotation over callers. */
export class ByteBudget {
  readonly #clock: Clock;
  readonly #refusal: string;
  readonly #shares: Shares;
  readonly #waiting = new FairQueue<Waiting>();

  /**
   * @param maxBytes the bytes for all callers together, each of which has a share
   * @param refusal the message for those for whom no bytes come free
   */
  constructor(clock: Clock, maxBytes: number, refusal: string) {
    this.#clock = clock;
    this.#refusal = refusal;
    this.#shares = new Shares(maxBytes);
  }

  /** Reserves bytes if they are free and nobody who holds nothing waits for them. */
  tryReserve(claim: ByteClaim): Reservation | undefined {
    const isTaken = this.#waiting.heads().some((waiting) => this.#holdsNothing(waiting.claim));
    return isTaken ? undefined : this.#tryReserve(claim);
  }

  /**
   * Reserves bytes once they are free.
   * @param gone aborted when nobody wants them any more; its reason is thrown then
   * @throws EvregError `unavailable` when they are not free in time
   */
  reserve(claim: ByteClaim, waitMs: number, gone?: AbortSignal): Promise<Reservation> {
    const reservation = this.tryReserve(claim);
    return reservation === undefined ? this.#wait(claim, waitMs, gone) : Promise.resolve(reservation);
  }

  #holdsNothing({ caller }: ByteClaim): boolean {
    return this.#shares.heldBy(caller) === 0;
  }

  #tryReserve({ bytes, caller }: ByteClaim): Reservation | undefined {
    if (!this.#shares.tryTake(caller, bytes)) return undefined;
    let held = bytes;
    const keep = (kept: number): void => {
      if (kept >= held) return;
      this.#shares.release(caller, held, kept);
      held = kept;
      this.#serve();
    };
    return { keep, release: () => keep(0) };
  }

  #wait(claim: ByteClaim, waitMs: number, gone: AbortSignal | undefined): Promise<Reservation> {
    if (gone?.aborted === true) return Promise.reject(gone.reason as Error);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        cancelTimer();
        gone?.removeEventListener("abort", refuse);
        leaveQueue();
      };
      const refuse = (): void => {
        leave();
        const isGone = gone?.aborted === true;
        reject(isGone ? (gone.reason as Error) : new EvregError("unavailable", this.#refusal));
        // It may have been in the way of others.
        this.#serve();
      };
      const grant = (reservation: Reservation): void => {
        leave();
        resolve(reservation);
      };
      const leaveQueue = this.#waiting.push(claim.caller, { claim, grant });
      const cancelTimer = this.#clock.setTimer(refuse, waitMs);
      gone?.addEventListener("abort", refuse);
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
        this.#waiting.endTurn(claim.caller);
        return true;
      }
      if (this.#holdsNothing(claim)) return false;
    }
    return false;
  }
}
