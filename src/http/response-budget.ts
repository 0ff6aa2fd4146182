import { ByteBudget, type Reservation } from "../runtime/byte-budget.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ApiRequest } from "./request.ts";
import { chunksOf, isByteStream, type Part, type Reply, sizeOf } from "./response.ts";

export interface ResponseLimits {
  /**
   * Bytes of lists and figures that are being made, each counted at its largest. One thread reads them all, so who comes
   * waits for these.
   */
  readonly readBytes: number;
  /** Bytes of searches, which take seconds: lists wait for none of them. */
  readonly searchBytes: number;
  /** Bytes of large answers that their clients have not taken yet. */
  readonly heldBytes: number;
  /** An answer up to this size does not count against `heldBytes`. */
  readonly smallBytes: number;
  /** How long a request waits for either. */
  readonly waitMs: number;
}

const MIB = 1024 * 1024;
/** How long a later part waits: its answer has begun, and can only be broken off. */
const PART_WAIT_MS = 60_000;
const RESPONSE_LIMITS: ResponseLimits = {
  readBytes: 4 * MIB,
  searchBytes: 64 * MIB,
  heldBytes: 96 * MIB,
  smallBytes: 16 * 1024,
  waitMs: 10_000,
};

/** Reads soon start, and one that waits costs next to nothing. */
const READS_WAITING = 8_192;
/** Answers that nobody takes would keep others waiting in vain. */
const HELD_WAITING = 512;
/** The part of the bounds of what takes long that only small answers get, and how small they are: ordinary lists. */
const SMALL_PART = 1 / 8;
const SMALL_CLAIM = 1 / 128;

/** The most that an answer can be before it is made: a page of deliveries, one with its attempts, a part of a list of schemas. */
export const PAGE_BYTES = MIB;
/**
 * Bytes of the payloads in a part of a list of events: a small piece of each bound, so that there is room for many callers.
 */
export const EVENT_PART_BYTES = MIB;

const TOO_MUCH =
  "Too many large answers are on their way at once, and this one would not fit into memory beside them. Ask again in a moment, or for less with a smaller limit; and read answers as they come.";

/** What the budget needs of a request. */
export type BudgetedRequest = Pick<ApiRequest, "claim" | "untilDisconnect">;

/**
 * Bounds the memory of all answers: a page may have hundreds of megabytes, and stays in memory while its client does not
 * read it. Callers have shares of both bounds, and a page that is larger than half of one has that half to itself.
 */
export class ResponseBudget {
  readonly #clock: Clock;
  readonly #limits: ResponseLimits;
  readonly #reading: ByteBudget;
  readonly #searching: ByteBudget;
  readonly #held: ByteBudget;

  constructor(clock: Clock, limits: Partial<ResponseLimits> = {}) {
    this.#clock = clock;
    this.#limits = { ...RESPONSE_LIMITS, ...limits };
    const budget = (bytes: number, maxWaiting: number): ByteBudget => {
      const small = { claimBytes: bytes * SMALL_CLAIM, maxBytes: bytes * SMALL_PART };
      return new ByteBudget(clock, { maxBytes: bytes - small.maxBytes, maxWaiting, small }, TOO_MUCH);
    };
    const reading = { maxBytes: this.#limits.readBytes, maxWaiting: READS_WAITING };
    this.#reading = new ByteBudget(clock, reading, TOO_MUCH);
    this.#searching = budget(this.#limits.searchBytes, READS_WAITING);
    this.#held = budget(this.#limits.heldBytes, HELD_WAITING);
  }

  /**
   * Makes an answer once the budget has enough for it. One that is too large to be held then is dropped, and made again when
   * it can be held. `unavailable` when that takes too long. Of one in parts, only the first is made here, and each of the others
   * when the one before was taken and it can be held.
   * @param maxBytes the largest that it, or a part of it, can be
   * @param kind what it is counted with; see `ResponseLimits`
   */
  async answer(
    request: BudgetedRequest,
    maxBytes: number,
    make: () => Promise<Reply>,
    kind: "list" | "search" = "list",
  ): Promise<Reply> {
    const budget = kind === "search" ? this.#searching : this.#reading;
    const untilMs = this.#clock.monotonicMs() + this.#limits.waitMs;
    let reservation: Reservation | undefined;
    try {
      for (;;) {
        const reading = await this.#reserve(budget, request, maxBytes, untilMs);
        const outcome = await this.#makeOnce(request, maxBytes, make, reservation).finally(() =>
          reading.release(),
        );
        if (typeof outcome === "object") {
          reservation = undefined;
          return outcome;
        }
        reservation?.release();
        reservation = await this.#reserve(this.#held, request, outcome, untilMs);
      }
    } finally {
      reservation?.release();
    }
  }

  /**
   * Reserves for an answer that cannot be made again, as it reports a change: at once, or `undefined` where the budget is
   * used up.
   */
  tryReserve(request: BudgetedRequest, reply: Reply): Reply | undefined {
    const bytes = sizeOf(reply.body);
    if (bytes <= this.#limits.smallBytes) return reply;
    const reservation = this.#held.tryReserve(request.claim(bytes));
    reservation?.startTransfer(bytes);
    return reservation && { ...reply, release: () => reservation.release() };
  }

  /**
   * The answer with its reservation, or how many bytes it needs. A method of its own, so that a dropped answer does not stay
   * in memory while its request waits.
   */
  async #makeOnce(
    request: BudgetedRequest,
    maxBytes: number,
    make: () => Promise<Reply>,
    held: Reservation | undefined,
  ): Promise<Reply | number> {
    const reply = await make();
    const bytes = isByteStream(reply.body) ? maxBytes : sizeOf(reply.body);
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
    const reservations = [held, more].filter((one) => one !== undefined);
    for (const one of reservations) one.startTransfer(bytes);
    const release = (): void => {
      for (const one of reservations) one.release();
      free(reply.body);
    };
    const { body } = reply;
    if (!isByteStream(body) || body.parts === undefined) return { ...reply, release };
    const chunks = this.#inTurns(request, maxBytes, body.parts, reservations);
    return { ...reply, body: { bytes: undefined, chunks }, release };
  }

  /**
   * The parts of an answer. Between two of them it holds nothing, so that any number of long answers take turns, and who comes
   * new has one soon. While a part is made, its caller is not too slow.
   */
  async *#inTurns(
    request: BudgetedRequest,
    maxBytes: number,
    parts: AsyncIterable<Part>,
    reservations: Reservation[],
  ): AsyncGenerator<Uint8Array, void, void> {
    const release = (): void => {
      for (const one of reservations.splice(0)) one.release();
    };
    try {
      for await (const { body, isLast } of parts) {
        for (const chunk of chunksOf(body)) {
          for (const one of reservations) one.startTransfer(chunk.length);
          yield chunk;
          for (const one of reservations) one.endTransfer();
        }
        if (isLast) return;
        release();
        const untilMs = this.#clock.monotonicMs() + PART_WAIT_MS;
        reservations.push(await this.#reserve(this.#held, request, maxBytes, untilMs));
      }
    } finally {
      release();
    }
  }

  async #reserve(
    budget: ByteBudget,
    request: BudgetedRequest,
    bytes: number,
    untilMs: number,
  ): Promise<Reservation> {
    const claim = request.claim(bytes);
    return (
      budget.tryReserve(claim) ??
      request.untilDisconnect((signal) => budget.reserve(claim, untilMs - this.#clock.monotonicMs(), signal))
    );
  }
}

/**
 * Frees the memory of an answer that is out or dropped. V8 would do so later: a few objects that hold much outside its heap
 * give it no reason to collect, and hundreds of pages stayed in memory.
 */
function free(body: Reply["body"]): void {
  if (typeof body === "string" || isByteStream(body)) return;
  for (const { buffer } of body) if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}
