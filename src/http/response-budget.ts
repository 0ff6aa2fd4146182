import { ByteBudget, type Reservation } from "../runtime/byte-budget.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ApiRequest } from "./request.ts";
import { isByteStream, type Reply, sizeOf } from "./response.ts";

export interface ResponseLimits {
  /** What answers may come to that are made at once, each taken at its largest. */
  readonly readBytes: number;
  /** What large answers hold at once until their callers have taken them. */
  readonly heldBytes: number;
  /** An answer up to this size is small: it is not held against `heldBytes`. */
  readonly smallBytes: number;
  /** How long a request waits for either. */
  readonly waitMs: number;
}

const MIB = 1024 * 1024;
const ANSWER_LIMITS: ResponseLimits = {
  readBytes: 128 * MIB,
  heldBytes: 96 * MIB,
  smallBytes: 16 * 1024,
  waitMs: 10_000,
};

/** Reads come to their turn soon, and what waits for one costs next to nothing. */
const READS_WAITING = { maxWaiting: 4_096, tokenWaiting: 4_096 };
/** For those whose answers nobody takes others would wait in vain. */
const HELD_WAITING = { maxWaiting: 512, tokenWaiting: 128 };

/** What an answer comes to at most, as far as can be said before it is made: schemas and filters of a whole registry. */
export const REGISTRY_BYTES = 64 * MIB;
/** The same of a page of deliveries, of one with its attempts, and of anything smaller. */
export const PAGE_BYTES = MIB;

const TOO_MUCH =
  "Too many large answers are on their way at once, and this one would not fit into memory beside them. Ask again in a moment, or for less with a smaller limit; and read answers as they come.";

/** Of a request, what its answer needs it for. */
export type BudgetedRequest = Pick<ApiRequest, "claim" | "untilDisconnect" | "nodeRequest">;

/**
 * Bounds the memory that answers take over all requests: a page may come to hundreds of megabytes, and a caller that does
 * not read its answer keeps it there. One page that is larger than a bound has it to itself. No token has more than half
 * of what is held, and no address more than three quarters.
 */
export class ResponseBudget {
  readonly #clock: Clock;
  readonly #limits: ResponseLimits;
  readonly #reading: ByteBudget;
  readonly #held: ByteBudget;

  constructor(clock: Clock, limits: Partial<ResponseLimits> = {}) {
    this.#clock = clock;
    this.#limits = { ...ANSWER_LIMITS, ...limits };
    const { readBytes, heldBytes } = this.#limits;
    // Reading takes as long as evreg does, and no caller can make it longer.
    const reading = { maxBytes: readBytes, addressBytes: readBytes, tokenBytes: readBytes, ...READS_WAITING };
    this.#reading = new ByteBudget(clock, reading, TOO_MUCH);
    const held = { maxBytes: heldBytes, addressBytes: (heldBytes * 3) / 4, tokenBytes: heldBytes / 2 };
    this.#held = new ByteBudget(clock, { ...held, ...HELD_WAITING }, TOO_MUCH);
  }

  /**
   * Makes an answer when there is room for it. What is too large to be held now is let go of, and made again when there
   * is room for that. `unavailable` when there is none in time.
   * @param largestBytes what the answer can come to at most
   */
  async answer(request: BudgetedRequest, largestBytes: number, make: () => Promise<Reply>): Promise<Reply> {
    const untilMs = this.#clock.now() + this.#limits.waitMs;
    let share: Reservation | undefined;
    try {
      for (;;) {
        const reading = await this.#take(this.#reading, request, largestBytes, untilMs);
        const outcome = await this.#makeOnce(request, make, share).finally(() => reading.release());
        if (typeof outcome === "object") {
          share = undefined;
          return outcome;
        }
        share?.release();
        share = await this.#take(this.#held, request, outcome, untilMs);
      }
    } finally {
      share?.release();
    }
  }

  /**
   * An answer that is made already and cannot be made again, with its room; `undefined` where there is none right now.
   * Nothing waits and nothing fails here, as what it tells of has been done.
   */
  tryReserve(request: BudgetedRequest, reply: Reply): Reply | undefined {
    const bytes = sizeOf(reply.body);
    if (bytes <= this.#limits.smallBytes) return reply;
    const share = this.#held.tryReserve(request.claim(bytes));
    share?.startTransfer(bytes);
    return share && { ...reply, release: () => share.release() };
  }

  /**
   * The answer, which then has the share; or how many bytes it needs to be held, where they are not free. A function of
   * its own, as otherwise what was let go of would stay in memory for as long as its request waits.
   */
  async #makeOnce(
    request: BudgetedRequest,
    make: () => Promise<Reply>,
    held: Reservation | undefined,
  ): Promise<Reply | number> {
    const reply = await make();
    const bytes = sizeOf(reply.body);
    if (bytes <= this.#limits.smallBytes) {
      held?.release();
      return reply;
    }
    // The page may have grown while its request waited.
    const missing = bytes - (held?.claim.bytes ?? 0);
    const more = missing > 0 ? this.#held.tryReserve(request.claim(missing)) : undefined;
    if (missing > 0 && more === undefined) {
      free(reply.body);
      return bytes;
    }
    held?.startTransfer(bytes);
    more?.startTransfer(bytes);
    const release = (): void => {
      held?.release();
      more?.release();
      if (request.nodeRequest !== undefined) free(reply.body);
    };
    return { ...reply, release };
  }

  async #take(
    budget: ByteBudget,
    request: BudgetedRequest,
    bytes: number,
    untilMs: number,
  ): Promise<Reservation> {
    const claim = request.claim(bytes);
    return (
      budget.tryReserve(claim) ??
      request.untilDisconnect((gone) => budget.reserve(claim, untilMs - this.#clock.now(), gone))
    );
  }
}

/**
 * Gives the memory of an answer back at once that is out, or let go of, and was made for one request alone. V8 would do so some time
 * later: few objects that hold much outside its heap give it no reason to collect, and hundreds of pages gathered so.
 */
function free(body: Reply["body"]): void {
  if (typeof body === "string" || isByteStream(body)) return;
  for (const { buffer } of body) if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}
