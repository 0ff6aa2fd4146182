import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import type { DeliveryConfig } from "../config/keys.ts";

/** The limit of an unknown subscription. One attempt shows as much as many, and many handlers may hang at a start. */
export const FIRST_LIMIT = 1;
/** The limit grows with each answer up to this, whatever the answer is: the handler is there. */
const UNCONDITIONAL = 32;
/**
 * Where answers take less, `UNCONDITIONAL` at a time are more than a thousand a second already. Such times may come from
 * this process's own lack of CPU, and more at a time would lower the rate by a fifth.
 */
const MIN_MS = 25;
/** Answers that take longer than the usual time by this factor mean that there are too many at once. */
const TOLERANCE = 1.5;
/** The part of the limit that must be in use for it to grow. */
const USED_PART = 3 / 4;
/** Its growth with each answer beyond `UNCONDITIONAL`: by half in the time of one answer. */
const INCREASE = 1 / 2;
/** Answers faster than the usual time by this factor lower it, and this is the weight of each sample. */
const LESS = 4 / 5;
const FOLLOW = 1 / 8;
/** The number of answers in a sample; fewer where fewer are in flight. */
const SAMPLE = 64;

/**
 * How many attempts a subscription may have in flight: a limit that adapts to what its handler can take.
 *
 * It grows while answers take the usual time, and falls when they take longer (a gradient limiter). The usual time is
 * learnt with few in flight, so a handler that is steadily slow does not count as overloaded, and one that has become slower
 * is learnt anew once the limit is low. Attempts without an answer, and answers that mean "too much", halve it.
 */
export class AdaptiveLimit {
  #max: number;
  /** The limit, with a fraction. */
  #size = FIRST_LIMIT;
  /** The time of answers with few in flight, or a lower one since; unknown before the first sample. */
  #usualMs: number | undefined;
  #sample: number[] = [];
  #isSteady = true;
  /** How many attempts may still be answered that started before the last reduction. */
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

/** A late timer may catch up on this much, and there is no other burst. */
const BURST_MS = 50;

/**
 * Limits attempts to so many a second (the generic cell rate algorithm): each has its slot, and starts at most a little
 * before it. So no second has more than the rate, a twentieth of it, and one.
 */
export class RateLimiter {
  readonly perSecond: number;
  readonly #gapMs: number;
  /** The slot of the next. */
  #slotMs = -Infinity;

  /** @param before what limited them until now: the new rate counts from the last attempt */
  constructor(perSecond: number, before?: RateLimiter) {
    this.perSecond = perSecond;
    this.#gapMs = 1_000 / perSecond;
    if (before !== undefined) this.#slotMs = before.#slotMs - before.#gapMs + this.#gapMs;
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

  #nextSlotMs(nowMs: number): number {
    return Math.max(nowMs, this.#slotMs);
  }
}

/** Memory of an attempt in flight over TLS, mostly for its connection; without TLS it is a tenth. */
const ATTEMPT_BYTES = 128 * 1_024;
/** The parts of the memory and of the descriptors that attempts may use. */
const MEMORY_PART = 1 / 4;
const DESCRIPTOR_PART = 1 / 2;
/** Descriptors of files and threads. */
const OTHER_DESCRIPTORS = 64;

/**
 * The configured limits, or what memory and file descriptors allow: with too many, attempts would fail for want of a
 * socket.
 */
export function capacityOf(
  config: Pick<DeliveryConfig, "maxInFlight" | "maxInFlightPerSubscription">,
  { memoryBytes, descriptors }: ReturnType<typeof processLimits>,
) {
  const byMemory = (memoryBytes * MEMORY_PART) / ATTEMPT_BYTES;
  const byDescriptors = (descriptors - OTHER_DESCRIPTORS) * DESCRIPTOR_PART;
  const inFlight = Math.max(1, Math.floor(Math.min(config.maxInFlight, byMemory, byDescriptors)));
  // No subscription can take all.
  const perSubscription = Math.min(config.maxInFlightPerSubscription, Math.max(1, Math.floor(inFlight / 2)));
  return { inFlight, perSubscription };
}

/**
 * What this process may use: of a container, where its limits are below the machine's. Node has raised the number of descriptors as
 * far as it may; it is `Infinity` where the system does not report it.
 */
export function processLimits() {
  const constrained = process.constrainedMemory();
  return {
    memoryBytes: Math.min(totalmem(), constrained > 0 ? constrained : Infinity),
    descriptors: openFilesLimit(),
  };
}

function openFilesLimit(): number {
  try {
    const limits = readFileSync("/proc/self/limits", "latin1");
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}
