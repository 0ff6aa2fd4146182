import { bucketOf } from "../../domain/stats/histogram.ts";
import { MINUTE_MS } from "../../domain/stats/stats.ts";
import type { DeliveryResult } from "../../domain/stream.ts";
import { type Series, SeriesTable } from "./series.ts";
import type { Tally } from "./tally.ts";
import { codeOf, EMPTY_SLOT, MEASURE, measureOf, merged, seriesOf, type Slot, slotOf } from "./slot.ts";

/** Of whole steps of time, counted since the epoch. */
interface TimedSlot {
  readonly step: number;
  readonly slot: Slot;
}

/** A minute that has ended. */
export interface EndedMinute {
  /** Milliseconds since the epoch. */
  readonly startMs: number;
  readonly slot: Slot;
}

const SECOND_MS = 1_000;
const TEN_MS = 10 * SECOND_MS;
/** Steps of the rings: 5 minutes and an hour. */
const SECONDS = 300;
const TENS = 360;
/** Codes that are counted together: 32 KiB of them. */
const LOG_CODES = 8_192;
/** Of each ring. Beyond, it reaches less far back. */
const RING_BYTES = 16 * 1024 * 1024;
const BYTES_PER_CODE = 8;
/** A clock that goes back by more begins anew; by less, what happens counts for the latest second. */
const SET_BACK_MS = MINUTE_MS;
/** Minutes that wait for a store that takes no writes. */
const MAX_WAITING = 60;
/** A series is kept for as long as a ring may hold it. */
const KEPT_MINUTES = MAX_WAITING + 2;

/** The last so many steps, those in which something happened. */
class Ring {
  readonly #stepMs: number;
  readonly #steps: number;
  #slots: TimedSlot[] = [];
  #codes = 0;
  /** Since when nothing is missing. */
  #wholeFromMs: number;

  constructor(stepMs: number, steps: number, startedMs: number) {
    this.#stepMs = stepMs;
    this.#steps = steps;
    this.#wholeFromMs = startedMs;
  }

  get wholeFromMs(): number {
    return this.#wholeFromMs;
  }

  push(step: number, slot: Slot): void {
    if (slot.codes.length > 0) {
      this.#slots.push({ step, slot });
      this.#codes += slot.codes.length;
    }
    let dropped = 0;
    for (const oldest of this.#slots) {
      const isPast = oldest.step <= step - this.#steps;
      if (!isPast && this.#codes * BYTES_PER_CODE <= RING_BYTES) break;
      this.#codes -= oldest.slot.codes.length;
      this.#wholeFromMs = Math.max(this.#wholeFromMs, (oldest.step + 1) * this.#stepMs);
      dropped += 1;
    }
    if (dropped > 0) this.#slots = this.#slots.slice(dropped);
  }

  since(fromMs: number): readonly TimedSlot[] {
    const first = Math.floor(fromMs / this.#stepMs);
    return this.#slots.filter(({ step }) => step >= first);
  }
}

/** Which series are looked at. */
export type SeriesFilter = (series: Series) => boolean;

/** The codes of a series in a slot. */
export interface SeriesRun {
  readonly series: Series;
  readonly from: number;
  readonly to: number;
}

/** Adds what a slot has of one series. */
export function addRun(tally: Tally, slot: Slot, { from, to }: SeriesRun): void {
  for (let at = from; at < to; at += 1) tally.count(measureOf(slot.codes[at]!), slot.counts[at]!);
}

/**
 * What happened in the last minutes, second by second for 5 minutes and in steps of 10 seconds for an hour, and the minutes
 * that are not stored yet. Counting is a write to a typed array. Once a second that something happens in ends, what was
 * counted is sorted and added up.
 */
export class StatsCounts {
  readonly series = new SeriesTable();
  readonly #log = new Uint32Array(LOG_CODES);
  #logged = 0;
  /** Each what came since the last one ended. */
  #second: Slot = EMPTY_SLOT;
  #ten: Slot = EMPTY_SLOT;
  #minute: Slot = EMPTY_SLOT;
  /** The present second ends here. */
  #secondEndMs = -Infinity;
  #seconds: Ring;
  #tens: Ring;
  #ended: EndedMinute[] = [];
  #startedMs: number;
  readonly #refusals = new WeakSet<object>();
  /** While ended minutes are being stored. */
  storing: Promise<void> | undefined;
  /** How often that has begun. */
  stores = 0;

  constructor(startedMs: number) {
    this.#startedMs = startedMs;
    this.#secondEndMs = endOf(startedMs, SECOND_MS);
    this.#seconds = new Ring(SECOND_MS, SECONDS, startedMs);
    this.#tens = new Ring(TEN_MS, TENS, startedMs);
  }

  /** Since when it counts. */
  get startedMs(): number {
    return this.#startedMs;
  }

  published(action: string, application: string, nowMs: number): void {
    this.#count(this.series.ofAction(action, application), MEASURE.published, nowMs);
  }

  /**
   * Counts each failure once, by whoever comes first.
   * @param action of which the event is, if that is known
   */
  refused(failure: object, nowMs: number, action?: string, application = ""): void {
    if (this.#refusals.has(failure)) return;
    this.#refusals.add(failure);
    const { series } = this;
    const number =
      action === undefined ? series.ofApplication(application) : series.ofAction(action, application);
    this.#count(number, MEASURE.refused, nowMs);
  }

  /**
   * The result of an attempt was stored. One that was cut short counts nowhere, as what a filter excluded.
   * @param latencyMs from publishing to its end; left out where that says nothing of evreg
   */
  attempted(result: DeliveryResult, latencyMs: number | undefined, nowMs: number): void {
    const { subscription_id: subscription, action, application, duration_ms: durationMs, status } = result;
    if (durationMs === null || result.error_code === "interrupted") return;
    const number = this.series.ofDelivery(subscription, action, application);
    const bucket = bucketOf(durationMs);
    if (status === "delivered") {
      this.#count(number, MEASURE.delivered + bucket, nowMs);
      if (latencyMs !== undefined) this.#count(number, MEASURE.latency + bucketOf(latencyMs), nowMs);
      return;
    }
    this.#count(number, MEASURE.failedAttempt + bucket, nowMs);
    if (status === "failed") this.#count(number, MEASURE.failed, nowMs);
    const series = this.series.get(number)!;
    series.lastError = result.error_code ?? String(result.status_code);
    series.lastErrorMs = nowMs;
  }

  /** A delivery failed for good without an attempt. */
  failed(subscription: number, action: string, application: string, nowMs: number): void {
    this.#count(this.series.ofDelivery(subscription, action, application), MEASURE.failed, nowMs);
  }

  #count(series: number, measure: number, nowMs: number): void {
    if (nowMs >= this.#secondEndMs || nowMs < this.#secondEndMs - SET_BACK_MS) this.#endSecond(nowMs);
    if (this.#logged === LOG_CODES) this.#settle();
    this.#log[this.#logged] = codeOf(series, measure);
    this.#logged += 1;
  }

  /** Adds up what was logged. */
  #settle(): void {
    if (this.#logged === 0) return;
    this.#second = merged(this.#second, slotOf(this.#log.subarray(0, this.#logged)));
    this.#logged = 0;
  }

  #endSecond(nowMs: number): void {
    this.#settle();
    const endMs = this.#secondEndMs;
    this.#secondEndMs = endOf(nowMs, SECOND_MS);
    this.#seconds.push(endMs / SECOND_MS - 1, this.#second);
    this.#ten = merged(this.#ten, this.#second);
    this.#second = EMPTY_SLOT;
    if (nowMs < endMs - SET_BACK_MS) return this.#beginAgain(endMs, nowMs);
    // The first second of the next time has its end within it.
    const tenEndMs = endOf(endMs - 1, TEN_MS);
    if (nowMs < tenEndMs) return;
    this.#tens.push(tenEndMs / TEN_MS - 1, this.#ten);
    this.#minute = merged(this.#minute, this.#ten);
    this.#ten = EMPTY_SLOT;
    const minuteEndMs = endOf(endMs - 1, MINUTE_MS);
    if (nowMs < minuteEndMs) return;
    this.#endMinute(minuteEndMs - MINUTE_MS, nowMs);
  }

  /** The clock was set back. The minute that began is stored as it is. */
  #beginAgain(endMs: number, nowMs: number): void {
    this.#minute = merged(this.#minute, this.#ten);
    this.#ten = EMPTY_SLOT;
    this.#endMinute(endOf(endMs - 1, MINUTE_MS) - MINUTE_MS, nowMs);
    this.#startedMs = nowMs;
    this.#seconds = new Ring(SECOND_MS, SECONDS, nowMs);
    this.#tens = new Ring(TEN_MS, TENS, nowMs);
  }

  #endMinute(startMs: number, nowMs: number): void {
    const slot = this.#minute;
    this.#minute = EMPTY_SLOT;
    const minute = Math.floor(nowMs / MINUTE_MS);
    for (const code of slot.codes) {
      const series = this.series.get(seriesOf(code));
      if (series !== undefined) series.lastMinute = minute;
    }
    if (slot.codes.length > 0) this.#ended.push({ startMs, slot });
    if (this.#ended.length > MAX_WAITING) this.#ended.shift();
    this.series.forget(minute - KEPT_MINUTES);
  }

  /**
   * The minutes that have ended and are not stored; they are kept until `stored`.
   * @param all with the present one, which goes on as another part of the same minute
   */
  takeEnded(nowMs: number, { all = false } = {}): readonly EndedMinute[] {
    if (nowMs >= this.#secondEndMs) this.#endSecond(nowMs);
    if (all) {
      this.#settle();
      this.#minute = merged(this.#minute, merged(this.#ten, this.#second));
      this.#ten = EMPTY_SLOT;
      this.#second = EMPTY_SLOT;
      this.#endMinute(endOf(nowMs, MINUTE_MS) - MINUTE_MS, nowMs);
    }
    return [...this.#ended];
  }

  stored(minute: EndedMinute): void {
    this.#ended = this.#ended.filter((one) => one !== minute);
  }

  /** What is not stored yet, the present minute last. */
  unstored(nowMs: number): readonly EndedMinute[] {
    const ended = this.takeEnded(nowMs);
    this.#settle();
    const slot = merged(this.#minute, merged(this.#ten, this.#second));
    return [...ended, { startMs: endOf(nowMs, MINUTE_MS) - MINUTE_MS, slot }];
  }

  /** Since when the ring of these steps is whole: within a step, and a minute, where counting began there. */
  wholeFromMs(stepMs: number): number {
    return this.#ringOf(stepMs).wholeFromMs;
  }

  /** Calls back with the start of each step since `fromMs` in which something happened, and with what did. */
  visitSteps(
    stepMs: number,
    fromMs: number,
    nowMs: number,
    visit: (startMs: number, slot: Slot) => void,
  ): void {
    if (nowMs >= this.#secondEndMs) this.#endSecond(nowMs);
    this.#settle();
    for (const { step, slot } of this.#ringOf(stepMs).since(fromMs)) visit(step * stepMs, slot);
    const open = stepMs === SECOND_MS ? this.#second : merged(this.#ten, this.#second);
    if (open.codes.length > 0) visit(endOf(this.#secondEndMs - 1, stepMs) - stepMs, open);
  }

  #ringOf(stepMs: number): Ring {
    return stepMs === SECOND_MS ? this.#seconds : this.#tens;
  }

  /** Each series of a slot that passes the filter, with where in it its codes are. */
  *runs({ codes }: Slot, filter: SeriesFilter): Generator<SeriesRun> {
    for (let from = 0; from < codes.length;) {
      const number = seriesOf(codes[from]!);
      let to = from + 1;
      while (to < codes.length && seriesOf(codes[to]!) === number) to += 1;
      const series = this.series.get(number);
      if (series !== undefined && filter(series)) yield { series, from, to };
      from = to;
    }
  }
}

/** The end of the span of time that `ms` is in. */
function endOf(ms: number, spanMs: number): number {
  return (Math.floor(ms / spanMs) + 1) * spanMs;
}
