import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import type { DeliveryConfig } from "../config/schema.ts";

/**
 * What the last attempts of a subscription tell: that its handler answers soon, nothing yet, or that it is slow, hangs or
 * cannot be reached. The quick ones may have all the room there is, and always have some.
 */
export const QUICK = 0;
export const UNKNOWN = 1;
export const SLOW = 2;
export type Tier = typeof QUICK | typeof UNKNOWN | typeof SLOW;

/** Most of all attempts that may be those of subscriptions not known to be quick, and of slow ones among them. */
const UNPROVEN_PART = 3 / 4;
const SLOW_PART = 1 / 2;
/**
 * How much of what the slow ones leave of that those may have together of which nothing is known. They are known after a
 * second, one way or the other, so however many of them hang, there is soon some room for the next.
 */
const UNKNOWN_SHARE = 1 / 2;
/** How much of the room for slow ones one of them may have. */
const SLOW_SHARE = 1 / 8;

export interface Load {
  /** Most attempts under way. */
  readonly most: number;
  readonly underWay: number;
  /** Deliveries leased to subscriptions of which nothing is known, and to slow ones. */
  readonly unknown: number;
  readonly slow: number;
}

export function freeOf({ most, underWay }: Pick<Load, "most" | "underWay">): number {
  return Math.max(0, most - underWay);
}

/** How many deliveries more those of a tier may have leased. */
export function roomOfTier(tier: typeof UNKNOWN | typeof SLOW, load: Load): number {
  const { most, unknown, slow } = load;
  const unproven = Math.ceil(most * UNPROVEN_PART) - slow;
  const room =
    tier === SLOW
      ? Math.min(unproven - unknown, Math.ceil(most * SLOW_PART) - slow)
      : Math.max(1, Math.ceil(unproven * UNKNOWN_SHARE)) - unknown;
  return Math.max(0, Math.min(freeOf(load), room));
}

/**
 * Most attempts that one quick subscription may have under way: never more than are still free, so that however many are
 * busy, all have about the same and some are left for the next (the dynamic thresholds of shared-memory switches).
 */
export function mostOfQuick(window: number, free: number): number {
  return Math.max(1, Math.min(window, free));
}

/**
 * Most deliveries that one slow subscription may have leased. Each so takes a smaller part than the one before, until they
 * have one each.
 * @param room of all that are slow
 */
export function mostOfSlow(window: number, room: number): number {
  return Math.max(1, Math.min(window, Math.floor(room * SLOW_SHARE)));
}

/**
 * How many attempts a subscription may have under way of which nothing is known. One tells as much as many, and when many
 * handlers hang at a start, each takes one place.
 */
export const FIRST_WINDOW = 1;
/** Up to here it grows with each answer, whatever that says and however long it takes: the handler is there. */
const UNCONDITIONAL = 32;
/**
 * Where answers take less, `UNCONDITIONAL` at a time are more than a thousand a second already. Such times may be this
 * process's own, where it has too little of a processor: more at a time then only cost more, by a fifth of the rate.
 */
const LEAST_MS = 25;
/** How much longer than usual answers may take before that counts as too much for the handler. */
const TOLERANCE = 1.5;
/** How much of the window must be in use for it to grow: what is not used tells nothing. */
const USED_PART = 3 / 4;
/** Beyond `UNCONDITIONAL`, by how much of an answer: by half in the time of one answer. */
const STEP = 1 / 2;
/** How much less than usual answers must take for the usual time to follow them, and how fast it does. */
const LESS = 4 / 5;
const FOLLOW = 1 / 8;
/** The median of so many answers tells what they take now; of fewer where fewer are under way. */
const SAMPLE = 64;

/**
 * How many attempts a subscription may have under way at a time: a limit that adapts to what its handler takes.
 *
 * It grows while answers take as long as ever, and comes down where they take longer the more of them there are (a
 * gradient limiter). What they usually take is learnt with few under way, so a handler that is slow, and steadily so, is
 * not taken for one that has too much. One that has become slower is learnt anew, as the limit comes down to few by that.
 * Attempts without an answer, and answers that say "too much", halve it.
 */
export class Window {
  #most: number;
  /** With a fraction. */
  #size = FIRST_WINDOW;
  /** What answers took with few under way, or less since; unknown before the first sample. */
  #usualMs: number | undefined;
  #sample: number[] = [];
  #isSteady = true;
  /** Answers to come that began before it was lowered last. */
  #stale = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return Math.floor(this.#size);
  }

  limitTo(most: number): void {
    this.#most = most;
    this.#size = Math.min(this.#size, most);
  }

  /** @param underWay how many there were, this one included */
  answered(durationMs: number, underWay: number): void {
    this.#stale -= 1;
    this.#sample.push(durationMs);
    if (this.#sample.length >= Math.min(this.#size, SAMPLE)) this.#judge(underWay);
    if (this.#size < UNCONDITIONAL) this.#size = Math.min(this.#most, this.#size + 1);
    else if (this.#isSteady && underWay >= this.#size * USED_PART) {
      this.#size = Math.min(this.#most, this.#size + STEP);
    }
  }

  /** The handler is there, and something is wrong with it: no reason for more than a few. */
  faulted(): void {
    if (this.#size < UNCONDITIONAL) this.#size = Math.min(this.#most, this.#size + 1);
    else this.#size = Math.max(UNCONDITIONAL, this.#size - 1);
  }

  halve(): void {
    this.#size = Math.max(1, Math.floor(this.#size / 2));
    this.#sample = [];
  }

  #judge(underWay: number): void {
    const tookMs = median(this.#sample);
    this.#sample = [];
    if (this.#usualMs === undefined || this.#size <= UNCONDITIONAL) this.#usualMs = tookMs;
    else if (tookMs < this.#usualMs * LESS) this.#usualMs += (tookMs - this.#usualMs) * FOLLOW;
    const boundMs = this.#usualMs * TOLERANCE;
    const isTooMuch = tookMs > boundMs;
    this.#isSteady = !isTooMuch && tookMs >= LEAST_MS;
    if (!isTooMuch || this.#stale > 0 || this.#size <= UNCONDITIONAL) return;
    this.#size = Math.max(UNCONDITIONAL, this.#size * Math.max(1 / 2, boundMs / tookMs));
    this.#stale = underWay;
  }
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]!;
}

/** What was missed within this, as a timer came late, is made up for; it is all the burst there is. */
const BURST_MS = 50;

/**
 * Keeps attempts to so many a second (the generic cell rate algorithm): each has its slot, and none begins earlier than
 * a little before it. So no second sees more than the rate, a twentieth of it, and one.
 */
export class Pacer {
  readonly perSecond: number;
  readonly #gapMs: number;
  /** The slot of the next. */
  #slotMs = -Infinity;

  /**
   * @param perSecond above 0
   * @param before the one it takes the place of: it goes on from its slot, so that a change of the rate is no free turn
   */
  constructor(perSecond: number, before?: Pacer) {
    this.perSecond = perSecond;
    this.#gapMs = 1_000 / perSecond;
    if (before !== undefined) this.#slotMs = before.#slotMs;
  }

  began(nowMs: number): void {
    this.#slotMs = this.#nextSlotMs(nowMs) + this.#gapMs;
  }

  mayBegin(nowMs: number): boolean {
    return this.beginsAtMs(0, nowMs) <= nowMs;
  }

  /** When one may begin that has so many before it. */
  beginsAtMs(before: number, nowMs: number): number {
    return Math.max(nowMs, this.#nextSlotMs(nowMs) + before * this.#gapMs - BURST_MS);
  }

  /** How many may have begun by then. */
  countBy(untilMs: number, nowMs: number): number {
    const leftMs = untilMs + BURST_MS - this.#nextSlotMs(nowMs);
    return leftMs < 0 ? 0 : 1 + Math.floor(leftMs / this.#gapMs);
  }

  /** Whether a new one would be no different. */
  isRested(nowMs: number): boolean {
    return this.#slotMs <= nowMs;
  }

  /** Never further off than it can be by itself: a clock that was set back makes nobody wait. */
  #nextSlotMs(nowMs: number): number {
    return Math.max(nowMs, Math.min(this.#slotMs, nowMs + BURST_MS + this.#gapMs));
  }
}

/** What an attempt under way takes over TLS, mostly for its connection; without TLS it is a tenth. */
const ATTEMPT_BYTES = 128 * 1_024;
/** Of the memory and the descriptors there are, as much may be for attempts. */
const MEMORY_PART = 1 / 4;
const DESCRIPTOR_PART = 1 / 2;
/** Files, the threads' own, and what else is open at all times. */
const OTHER_DESCRIPTORS = 64;

/** What this process may have. */
interface Means {
  readonly memoryBytes: number;
  /** `undefined` where the system does not tell. */
  readonly descriptors: number | undefined;
}

/** Most attempts under way. */
export interface Capacity {
  readonly inFlight: number;
  readonly perSubscription: number;
  /** What keeps it below what is configured. */
  readonly boundBy: "memory" | "descriptors" | undefined;
}

/** As configured, or what memory and file descriptors allow: with too many, attempts would fail for want of a socket. */
export function capacityOf(
  {
    maxInFlight,
    maxInFlightPerSubscription,
  }: Pick<DeliveryConfig, "maxInFlight" | "maxInFlightPerSubscription">,
  { memoryBytes, descriptors }: Means,
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
export function ownMeans(): Means {
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
