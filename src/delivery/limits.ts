import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import type { DeliveryConfig } from "../config/schema.ts";

/**
 * How the last attempts of a subscription went: its handler answers soon, nothing is known yet, or it is slow, hangs or
 * cannot be reached. Fast ones may use all the capacity there is, and always have some.
 */
export const FAST = 0;
export const UNKNOWN = 1;
export const SLOW = 2;
export type Tier = typeof FAST | typeof UNKNOWN | typeof SLOW;

/** The part of all attempts that subscriptions not known to be fast may have together, and the part that slow ones may. */
const UNPROVEN_PART = 3 / 4;
const SLOW_PART = 1 / 2;
/**
 * How much of what slow ones leave of that the unknown ones may have together. They are known after a second, one way or
 * the other, so however many of them hang, there is soon some capacity for the next.
 */
const UNKNOWN_SHARE = 1 / 2;
/** How much of the capacity for slow ones a single one may have. */
const SLOW_SHARE = 1 / 8;

/** What all subscriptions together use. */
export interface Load {
  readonly maxInFlight: number;
  readonly inFlight: number;
  /** Deliveries leased to unknown subscriptions, and to slow ones. */
  readonly unknown: number;
  readonly slow: number;
}

/** How many more deliveries the unknown and the slow subscriptions may lease; under `FAST`: all together. */
export function tierLimits({ maxInFlight, inFlight, unknown, slow }: Load): Readonly<Record<Tier, number>> {
  const free = Math.max(0, maxInFlight - inFlight);
  const unproven = Math.ceil(maxInFlight * UNPROVEN_PART) - slow;
  const forUnknown = Math.max(1, Math.ceil(unproven * UNKNOWN_SHARE)) - unknown;
  const forSlow = Math.min(unproven - unknown, Math.ceil(maxInFlight * SLOW_PART) - slow);
  return {
    [FAST]: free,
    [UNKNOWN]: Math.max(0, Math.min(free, forUnknown)),
    [SLOW]: Math.max(0, Math.min(free, forSlow)),
  };
}

/**
 * How many attempts one fast subscription may have in flight: never more than are still free, so that however many are
 * busy, all have about the same and some remain for the next (the dynamic thresholds of shared-memory switches).
 */
export function dynamicThreshold(limit: number, free: number): number {
  return Math.max(1, Math.min(limit, free));
}

/**
 * How many deliveries one slow subscription may lease. Each so takes a smaller part than the one before, until they have
 * one each.
 * @param free of all that are slow
 */
export function slowThreshold(limit: number, free: number): number {
  return Math.max(1, Math.min(limit, Math.floor(free * SLOW_SHARE)));
}

/**
 * How many attempts a subscription may have in flight of which nothing is known. One shows as much as many, and when many
 * handlers hang at a start, each takes the capacity of one attempt.
 */
export const FIRST_LIMIT = 1;
/** Up to here the limit grows with each answer, whatever it is and however long it takes: the handler is there. */
const UNCONDITIONAL = 32;
/**
 * Where answers take less, `UNCONDITIONAL` at a time are more than a thousand a second already. Such times may be this
 * process's own, where it has too little of a processor: more at a time then only cost more, by a fifth of the rate.
 */
const MIN_MS = 25;
/** How much longer than usual answers may take before that counts as too much for the handler. */
const TOLERANCE = 1.5;
/** How much of the limit must be in use for it to grow: what is not used shows nothing. */
const USED_PART = 3 / 4;
/** Beyond `UNCONDITIONAL`, how much it grows with an answer: by half in the time of one answer. */
const INCREASE = 1 / 2;
/** How much less than usual answers must take for the usual time to follow them, and how fast it does. */
const LESS = 4 / 5;
const FOLLOW = 1 / 8;
/** The median of so many answers is what they take now; of fewer where fewer are in flight. */
const SAMPLE = 64;

/**
 * How many attempts a subscription may have in flight: a limit that adapts to what its handler can take.
 *
 * It grows while answers take as long as ever, and comes down where they take longer the more of them there are (a
 * gradient limiter). What they usually take is learnt with few in flight, so a handler that is slow, and steadily so, is
 * not taken for one that is overloaded. One that has become slower is learnt anew, as the limit comes down to few by that.
 * Attempts without an answer, and answers that mean "too much", halve it.
 */
export class AdaptiveLimit {
  #max: number;
  /** With a fraction. */
  #size = FIRST_LIMIT;
  /** What answers took with few in flight, or less since; unknown before the first sample. */
  #usualMs: number | undefined;
  #sample: number[] = [];
  #isSteady = true;
  /** Answers to come of attempts that started before it was lowered last. */
  #outdated = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return Math.floor(this.#size);
  }

  set max(max: number) {
    this.#max = max;
    this.#size = Math.min(this.#size, max);
  }

  /** @param inFlight how many there were, this one included */
  answered(durationMs: number, inFlight: number): void {
    this.#outdated -= 1;
    this.#sample.push(durationMs);
    if (this.#sample.length >= Math.min(this.#size, SAMPLE)) this.#judge(inFlight);
    if (this.#size < UNCONDITIONAL) this.#increase(1);
    else if (this.#isSteady && inFlight >= this.#size * USED_PART) this.#increase(INCREASE);
  }

  /** The handler is there, and something is wrong with it: no reason for more than a few. */
  faulted(): void {
    if (this.#size < UNCONDITIONAL) this.#increase(1);
    else this.#size = Math.max(UNCONDITIONAL, this.#size - 1);
  }

  halve(): void {
    this.#size = Math.max(1, Math.floor(this.#size / 2));
    this.#sample = [];
  }

  #increase(by: number): void {
    this.#size = Math.min(this.#max, this.#size + by);
  }

  #judge(inFlight: number): void {
    const tookMs = median(this.#sample);
    this.#sample = [];
    if (this.#usualMs === undefined || this.#size <= UNCONDITIONAL) this.#usualMs = tookMs;
    else if (tookMs < this.#usualMs * LESS) this.#usualMs += (tookMs - this.#usualMs) * FOLLOW;
    const boundMs = this.#usualMs * TOLERANCE;
    const isTooMuch = tookMs > boundMs;
    this.#isSteady = !isTooMuch && tookMs >= MIN_MS;
    if (!isTooMuch || this.#outdated > 0 || this.#size <= UNCONDITIONAL) return;
    this.#size = Math.max(UNCONDITIONAL, this.#size * Math.max(1 / 2, boundMs / tookMs));
    this.#outdated = inFlight;
  }
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]!;
}

/** A late timer may catch up on this much; it is all the burst there is. */
const BURST_MS = 50;

/**
 * Keeps attempts to so many a second (the generic cell rate algorithm): each has its slot, and none starts earlier than
 * a little before it. So no second sees more than the rate, a twentieth of it, and one.
 */
export class RateLimiter {
  readonly perSecond: number;
  readonly #gapMs: number;
  /** The slot of the next. */
  #slotMs = -Infinity;

  /**
   * @param perSecond above 0
   * @param before the one it replaces: it continues from that one's slot, so that nobody gains by changing the rate
   */
  constructor(perSecond: number, before?: RateLimiter) {
    this.perSecond = perSecond;
    this.#gapMs = 1_000 / perSecond;
    if (before !== undefined) this.#slotMs = before.#slotMs;
  }

  started(nowMs: number): void {
    this.#slotMs = this.#nextSlotMs(nowMs) + this.#gapMs;
  }

  allows(nowMs: number): boolean {
    return this.allowedAtMs(0, nowMs) <= nowMs;
  }

  /** When an attempt may start that has so many before it. */
  allowedAtMs(before: number, nowMs: number): number {
    return Math.max(nowMs, this.#nextSlotMs(nowMs) + before * this.#gapMs - BURST_MS);
  }

  /** How many may have started by then. */
  allowance(untilMs: number, nowMs: number): number {
    const remainingMs = untilMs + BURST_MS - this.#nextSlotMs(nowMs);
    return remainingMs < 0 ? 0 : 1 + Math.floor(remainingMs / this.#gapMs);
  }

  /** Whether a new one would be no different. */
  isIdle(nowMs: number): boolean {
    return this.#slotMs <= nowMs;
  }

  /** Never further off than it can be by itself: a clock that was set back makes nobody wait. */
  #nextSlotMs(nowMs: number): number {
    return Math.max(nowMs, Math.min(this.#slotMs, nowMs + BURST_MS + this.#gapMs));
  }
}

/** What an attempt in flight takes over TLS, mostly for its connection; without TLS it is a tenth. */
const ATTEMPT_BYTES = 128 * 1_024;
/** Of the memory and the descriptors there are, as much may be for attempts. */
const MEMORY_PART = 1 / 4;
const DESCRIPTOR_PART = 1 / 2;
/** Files, the threads' own, and what else is open at all times. */
const OTHER_DESCRIPTORS = 64;

/** What this process may use. */
interface ProcessLimits {
  readonly memoryBytes: number;
  /** `undefined` where the system does not report it. */
  readonly descriptors: number | undefined;
}

/** How many attempts may be in flight. */
interface Capacity {
  readonly inFlight: number;
  readonly perSubscription: number;
  /** Why it is below what is configured. */
  readonly boundBy: "memory" | "descriptors" | undefined;
}

/** As configured, or what memory and file descriptors allow: with too many, attempts would fail for want of a socket. */
export function capacityOf(
  {
    maxInFlight,
    maxInFlightPerSubscription,
  }: Pick<DeliveryConfig, "maxInFlight" | "maxInFlightPerSubscription">,
  { memoryBytes, descriptors }: ProcessLimits,
): Capacity {
  const byMemory = Math.max(1, Math.floor((memoryBytes * MEMORY_PART) / ATTEMPT_BYTES));
  const byDescriptors =
    descriptors === undefined
      ? Infinity
      : Math.max(1, Math.floor((descriptors - OTHER_DESCRIPTORS) * DESCRIPTOR_PART));
  const allowed = Math.min(byMemory, byDescriptors);
  if (maxInFlight <= allowed) {
    return { inFlight: maxInFlight, perSubscription: maxInFlightPerSubscription, boundBy: undefined };
  }
  return {
    inFlight: allowed,
    // As without a setting: none can take all.
    perSubscription: Math.min(maxInFlightPerSubscription, Math.max(1, Math.floor(allowed / 2))),
    boundBy: byMemory <= byDescriptors ? "memory" : "descriptors",
  };
}

/** Of a container, where its limits are below the machine's. Node has raised the number of descriptors as far as it may. */
export function processLimits(): ProcessLimits {
  const constrained = process.constrainedMemory();
  return {
    memoryBytes: Math.min(totalmem(), constrained > 0 ? constrained : Infinity),
    descriptors: openFilesLimit(),
  };
}

function openFilesLimit(): number | undefined {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
