import type { Clock } from "../runtime/clock.ts";
import type { Yielder } from "../runtime/yielding.ts";
import type { Claim } from "../store/queue.ts";
import type { InFlight } from "./in-flight.ts";
import { freeOf, mostOfQuick, QUICK } from "./limits.ts";
import { type Flow, type Flows, QUICK_MS } from "./subscription-state.ts";

/** Of a subscription that has a filter, deliveries that its turn may take, however little each takes. */
const MOST_LOOKED_AT = 64;
const CUT_AT = 256;
/**
 * Most bytes of payload under way: as of places, each may have as many as are still free. Each may have one attempt,
 * whatever its size.
 */
const BYTES_UNDER_WAY = 64 * 1_024 * 1_024;

export interface LocalQueueParts {
  readonly clock: Clock;
  readonly flows: Flows;
  /** Most attempts under way. */
  readonly most: number;
  readonly inFlight: Pick<InFlight, "size" | "bytes">;
  /**
   * Gets ready to tell whether a delivery's filter keeps it back. `undefined` where that can be told at once; else it
   * resolves, never rejects, when it is to be asked again.
   */
  readonly prepare: (claim: Claim) => Promise<void> | undefined;
  /** Ends a delivery that its subscription's filter keeps back; answers whether it did. */
  readonly keepsBack: (flow: Flow, claim: Claim) => boolean;
  readonly begin: (flow: Flow, claim: Claim) => void;
  /** Told of claims that are given up without having been begun. */
  readonly handBack: (claims: readonly Claim[]) => void;
  /** Shares the thread with what else runs long on it. */
  readonly yielder: Pick<Yielder, "shouldYield" | "yield">;
}

/**
 * Deliveries that are leased and not begun, so that there is always a next one while the store looks for more. Those whose
 * window is open take turns. Whatever has not been begun after a second is handed back: its handler has become slow.
 */
export class LocalQueue {
  readonly #parts: LocalQueueParts;
  /** Those that have some waiting and had room when they were looked at last. */
  readonly #turns = new Turns();
  #waiting = 0;
  #payloadBytes = 0;
  #isServing = false;
  #pause: Promise<void> | undefined;
  /** Those whose next cannot be begun before its filter is ready; the others go on meanwhile. */
  readonly #preparing = new Map<Flow, Promise<void>>();
  #isClosed = false;
  #cancelCheck: (() => void) | undefined;
  #yielderTimer: { readonly atMs: number; readonly cancel: () => void } | undefined;

  constructor(parts: LocalQueueParts) {
    this.#parts = parts;
  }

  /** Deliveries in it. */
  get size(): number {
    return this.#waiting;
  }

  /** What their payloads come to, those of an event for several subscriptions counted several times. */
  get payloadBytes(): number {
    return this.#payloadBytes;
  }

  /** Resolves when it goes on, while it leaves the thread to others or waits for a filter. */
  get pause(): Promise<void> | undefined {
    return this.#pause ?? this.#preparing.values().next().value;
  }

  add(claims: readonly Claim[]): void {
    const { clock, flows, handBack } = this.#parts;
    if (this.#isClosed) return handBack(claims);
    const sinceMs = clock.now();
    const refused: Claim[] = [];
    for (const claim of claims) {
      const flow = flows.of(claim.subscription.subscriptionId);
      if (flow.takesNone) {
        refused.push(claim);
        continue;
      }
      flow.settle(claim.subscription.settings);
      flow.lease({ claim, sinceMs });
      this.#waiting += 1;
      this.#payloadBytes += claim.event.payload?.byteLength ?? 0;
      this.#turns.add(flow);
    }
    if (refused.length > 0) handBack(refused);
    this.#serve();
  }

  /** An attempt of this one has ended, which may have opened its window. */
  ended(flow: Flow): void {
    if (flow.waiting > 0) this.#turns.add(flow);
    this.#serve();
  }

  /** Hands back all that a subscription has in it. */
  drop(flow: Flow): void {
    if (flow.waiting > 0) this.#parts.handBack(this.#takeAll(flow));
  }

  /** Hands back everything, also what is still to come. */
  close(): void {
    this.#isClosed = true;
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
    this.#yielderTimer?.cancel();
    for (const flow of this.#parts.flows) this.drop(flow);
  }

  #serve(): void {
    // An attempt may end as it begins; the round under way goes on with it.
    if (this.#isServing || this.#pause !== undefined) return;
    this.#isServing = true;
    const nowMs = this.#parts.clock.now();
    let passed = 0;
    // What is added while this goes round is visited as well.
    while (this.#turns.size > 0) {
      const free = this.#free;
      if (free === 0) break;
      // Signing takes its time: 250 bodies of 64 KiB would hold up every request for 30 ms.
      if (this.#parts.yielder.shouldYield()) {
        this.#pause = this.#yield();
        break;
      }
      const flow = this.#turns.next()!;
      // Comes back when one of its attempts ends.
      if (flow.waiting === 0 || flow.isFull || this.#preparing.has(flow)) continue;
      if (flow.pacer?.mayBegin(nowMs) === false) {
        this.#serveAt(flow.pacer.beginsAtMs(0, nowMs));
        continue;
      }
      if (!this.#isInBounds(flow, nowMs, free)) {
        this.#turns.add(flow);
        passed += 1;
        if (passed >= this.#turns.size) break;
        continue;
      }
      passed = 0;
      const claim = this.#takeWanted(flow, nowMs);
      if (claim !== undefined) this.#parts.begin(flow, claim);
      // What was leased to be filtered would wait for an answer of which nothing is known.
      if (flow.isOverfull(nowMs)) this.drop(flow);
      if (flow.waiting > 0) this.#turns.add(flow);
    }
    this.#isServing = false;
    if (this.#waiting > 0) this.#cancelCheck ??= this.#parts.clock.setTimer(() => this.#check(), QUICK_MS);
  }

  /** Whether it leaves enough of the places and of the memory to others. */
  #isInBounds(flow: Flow, nowMs: number, free: number): boolean {
    if (flow.underWay === 0) return true;
    if (flow.tier(nowMs) === QUICK && flow.underWay >= mostOfQuick(flow.window, free)) return false;
    return flow.bytesUnderWay < BYTES_UNDER_WAY - this.#parts.inFlight.bytes;
  }

  /** Serves those that are kept to a rate when the first of them may begin one. */
  #serveAt(atMs: number): void {
    if (this.#yielderTimer !== undefined && this.#yielderTimer.atMs <= atMs) return;
    this.#yielderTimer?.cancel();
    const { clock, flows } = this.#parts;
    const cancel = clock.setTimer(() => {
      this.#yielderTimer = undefined;
      // Also one whose rate was taken away meanwhile.
      for (const flow of flows) if (flow.waiting > 0) this.#turns.add(flow);
      this.#serve();
    }, atMs - clock.now());
    this.#yielderTimer = { atMs, cancel };
  }

  async #yield(): Promise<void> {
    await this.#parts.yielder.yield();
    this.#pause = undefined;
    this.#serve();
  }

  get #free(): number {
    const { most, inFlight } = this.#parts;
    return freeOf({ most, underWay: inFlight.size });
  }

  /** The next that its filter does not keep back, unless that takes longer than its turn. */
  #takeWanted(flow: Flow, nowMs: number): Claim | undefined {
    for (let looked = 0; looked < MOST_LOOKED_AT; looked += 1) {
      if (looked > 0 && this.#parts.yielder.shouldYield()) return undefined;
      const { head } = flow;
      if (head === undefined) return undefined;
      if (nowMs - head.sinceMs > QUICK_MS) {
        this.drop(flow);
        return undefined;
      }
      const { claim } = head;
      const preparing = this.#parts.prepare(claim);
      if (preparing !== undefined) {
        this.#preparing.set(flow, this.#prepared(flow, preparing));
        return undefined;
      }
      flow.shift();
      this.#gone(claim);
      if (!this.#parts.keepsBack(flow, claim)) return claim;
    }
    return undefined;
  }

  async #prepared(flow: Flow, preparing: Promise<void>): Promise<void> {
    await preparing;
    this.#preparing.delete(flow);
    this.ended(flow);
  }

  #takeAll(flow: Flow): Claim[] {
    const claims: Claim[] = [];
    for (let next = flow.shift(); next !== undefined; next = flow.shift()) {
      this.#gone(next.claim);
      claims.push(next.claim);
    }
    flow.hasMore = true;
    return claims;
  }

  #gone({ event }: Claim): void {
    this.#waiting -= 1;
    this.#payloadBytes -= event.payload?.byteLength ?? 0;
  }

  #check(): void {
    this.#cancelCheck = undefined;
    const nowMs = this.#parts.clock.now();
    for (const flow of this.#parts.flows) {
      const { head } = flow;
      if (head !== undefined && nowMs - head.sinceMs > QUICK_MS) this.drop(flow);
    }
    this.#serve();
  }
}

/**
 * Subscriptions in the order of their turns, each once. Not a Set: each table that it empties leads to the next one, so
 * once V8 has taken a table for long-lived, it keeps all that came after.
 */
class Turns {
  readonly #flows: Flow[] = [];
  #taken = 0;

  get size(): number {
    return this.#flows.length - this.#taken;
  }

  add(flow: Flow): void {
    if (flow.hasTurn) return;
    flow.hasTurn = true;
    this.#flows.push(flow);
  }

  next(): Flow | undefined {
    const flow = this.#flows[this.#taken];
    if (flow === undefined) return undefined;
    flow.hasTurn = false;
    this.#taken += 1;
    if (this.#taken === this.#flows.length || this.#taken >= CUT_AT) {
      this.#flows.splice(0, this.#taken);
      this.#taken = 0;
    }
    return flow;
  }
}
