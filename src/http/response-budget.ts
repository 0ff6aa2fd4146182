import { ByteBudget } from "../runtime/byte-budget.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ApiRequest } from "./request.ts";
import { type Chunks, isByteStream, type Reply, sizeOf } from "./response.ts";

export interface ResponseLimits {
  /**
   * Bytes of answers that are being made, each counted at its largest, and of those that their clients have not taken yet. One
   * thread reads them all, so with more of them who comes would wait for longer.
   */
  readonly answerBytes: number;
  /** The same of searches, which take seconds: no other answer waits for them. */
  readonly searchBytes: number;
  /** An answer up to this size counts only while it is made. */
  readonly smallBytes: number;
  /** How long a request waits for either. */
  readonly waitMs: number;
}

const MIB = 1024 * 1024;
const RESPONSE_LIMITS: ResponseLimits = {
  answerBytes: 32 * MIB,
  searchBytes: 64 * MIB,
  smallBytes: 16 * 1024,
  waitMs: 10_000,
};

/** The most that an answer can be before it is made: a page of deliveries, one with its attempts, a part of a list of schemas. */
export const PAGE_BYTES = MIB;
/**
 * Bytes of the payloads in a part of a list of events: a small piece of each bound, so that there is room for many callers.
 */
export const EVENT_PART_BYTES = MIB;

const TOO_MUCH =
  "Too many large answers are on their way at once, and this one would not fit into memory beside them. Ask again in a moment, for fewer at once, or for less with a smaller limit; and read answers as they come.";

/** What the budget needs of a request. */
export type BudgetedRequest = Pick<ApiRequest, "claim" | "untilDisconnect">;

/**
 * Bounds the memory of all answers, which stay there while their clients do not read them. Callers have shares of both bounds, and
 * an answer that is larger than half of one has that half to itself.
 */
export class ResponseBudget {
  readonly #limits: ResponseLimits;
  readonly #answers: ByteBudget;
  readonly #searches: ByteBudget;

  constructor(clock: Clock, limits: Partial<ResponseLimits> = {}) {
    this.#limits = { ...RESPONSE_LIMITS, ...limits };
    this.#answers = new ByteBudget(clock, this.#limits.answerBytes, TOO_MUCH);
    this.#searches = new ByteBudget(clock, this.#limits.searchBytes, TOO_MUCH);
  }

  /**
   * Makes an answer once the budget has enough for the largest that it can be; it then holds what it has come to. One in parts
   * holds as much as its largest part can be until its client has all of it: between two parts, what makes them has the last one still.
   * @param maxBytes the largest that it, or a part of it, can be
   * @param kind what it is counted with; see `ResponseLimits`
   * @throws EvregError `unavailable` when there is not enough in time
   */
  async answer(
    request: BudgetedRequest,
    maxBytes: number,
    make: () => Promise<Reply>,
    kind: "list" | "search" = "list",
  ): Promise<Reply> {
    const budget = kind === "search" ? this.#searches : this.#answers;
    const claim = request.claim(maxBytes);
    const { waitMs } = this.#limits;
    const reservation =
      budget.tryReserve(claim) ??
      (await request.untilDisconnect((signal) => budget.reserve(claim, waitMs, signal)));
    const release = (): void => reservation.release();
    let reply: Reply;
    try {
      reply = await make();
    } catch (error) {
      release();
      throw error;
    }
    const { body } = reply;
    if (isByteStream(body)) return { ...reply, release };
    const bytes = sizeOf(body);
    if (bytes <= this.#limits.smallBytes) {
      release();
      return reply;
    }
    reservation.keep(bytes);
    return {
      ...reply,
      release() {
        release();
        free(body);
      },
    };
  }

  /**
   * Reserves for an answer that cannot be made again, as it reports a change: at once, or `undefined` where the budget is
   * used up.
   */
  tryReserve(request: BudgetedRequest, reply: Reply): Reply | undefined {
    const bytes = sizeOf(reply.body);
    if (bytes <= this.#limits.smallBytes) return reply;
    const reservation = this.#answers.tryReserve(request.claim(bytes));
    return reservation && { ...reply, release: () => reservation.release() };
  }
}

/**
 * Frees the memory of an answer that is out. V8 would do so later: a few objects that hold much outside its heap give it no reason
 * to collect, and hundreds of pages stayed in memory.
 */
function free(body: string | Chunks): void {
  if (typeof body === "string") return;
  for (const { buffer } of body) if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}
