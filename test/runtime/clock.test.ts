import { beforeEach, describe, expect, it } from "vitest";
import { Alarm, type ClockStep, SharedClock, sleep, WatchedClock } from "../../src/runtime/clock.ts";
import { ManualClock } from "../support/manual-clock.ts";

let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
});

describe("a sleep", () => {
  it("ends with its time, not before", async () => {
    let isOver = false;
    const slept = sleep(clock, 100).then(() => (isOver = true));
    await clock.advance(99);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await slept;
    expect(clock.pending).toBe(0);
  });

  it("ends at once when its signal is aborted, and leaves no timer", async () => {
    const waking = new AbortController();
    const slept = Promise.all([sleep(clock, 100, waking.signal), sleep(clock, 200, waking.signal)]);
    waking.abort();
    await slept;
    await sleep(clock, 100, waking.signal);
    expect(clock.pending).toBe(0);
  });
});

describe("an alarm", () => {
  let rung: number[];
  let alarm: Alarm;
  const startMs = new ManualClock().monotonicMs();
  beforeEach(() => {
    rung = [];
    alarm = new Alarm(clock, () => rung.push(clock.monotonicMs() - startMs));
  });

  it("fires once at the earliest of its times, and again for a later one that is set then", async () => {
    alarm.at(startMs + 200);
    alarm.at(startMs + 100);
    alarm.at(startMs + 300);
    await clock.advance(300);
    expect(rung).toEqual([100]);
    alarm.at(startMs + 400);
    await clock.advance(100);
    expect(rung).toEqual([100, 400]);
  });

  it("fires at once for a time that has passed, and keeps its timer", async () => {
    alarm.at(startMs + 100);
    alarm.at(startMs);
    expect(rung).toEqual([0]);
    await clock.advance(100);
    expect(rung).toEqual([0, 100]);
  });

  it("does not fire once cleared", async () => {
    alarm.at(startMs + 100);
    alarm.clear();
    await clock.advance(1_000);
    expect(rung).toEqual([]);
  });

  it("fires after the time that has passed, wherever the time of day is set", async () => {
    alarm.at(startMs + 100);
    clock.set(clock.now() - 3_600_000);
    await clock.advance(99);
    expect(rung).toEqual([]);
    await clock.advance(1);
    expect(rung).toEqual([100]);
  });
});

describe("a shared clock", () => {
  it("is set by the other one, and not by an answer that was long on its way", () => {
    const shared = new SharedClock(clock);
    // Whole, so that nothing is rounded at the ends of a reading.
    const startMs = Math.trunc(performance.now());
    shared.read(1_000_000, startMs - 2, startMs + 2);
    // Time goes by between two readings, on a busy machine a lot.
    const expectAhead = (byMs: number, withinMs: number): void => {
      const beforeMs = performance.now();
      const nowMs = shared.now();
      expect(nowMs).toBeGreaterThan(beforeMs + byMs - withinMs);
      expect(nowMs).toBeLessThan(performance.now() + byMs + withinMs);
    };
    expectAhead(1_000_000 - startMs, 2);
    // Read at the beginning of ten seconds, and at their end.
    for (const readMs of [0, 10_000]) {
      shared.read(1_000_000 + 20_000 + readMs, startMs + 20_000, startMs + 30_000);
      expectAhead(1_000_000 - startMs, 2);
    }
    shared.read(900_000, startMs, startMs + 4);
    expectAhead(900_000 - startMs, 4);
  });
});

describe("a watched clock", () => {
  it("reports each step once, at the first reading after it, and none for a small correction", async () => {
    const watched = new WatchedClock(clock);
    const steps: ClockStep[] = [];
    watched.watch((step) => steps.push(step));
    await clock.advance(10_000);
    clock.set(clock.now() - 999);
    watched.now();
    expect(steps).toEqual([]);
    // Together they are a step.
    clock.set(clock.now() - 1);
    const backAtMs = watched.now();
    watched.now();
    expect(steps).toEqual([{ byMs: -1_000, nowMs: backAtMs }]);
    clock.set(clock.now() + 3_600_000);
    const forwardAtMs = watched.now();
    expect(steps.slice(1)).toEqual([{ byMs: 3_600_000, nowMs: forwardAtMs }]);
  });

  it("reports a step from before it was watched", () => {
    const watched = new WatchedClock(clock);
    clock.set(clock.now() - 5_000);
    watched.now();
    const steps: ClockStep[] = [];
    watched.watch((step) => steps.push(step));
    watched.now();
    expect(steps).toMatchObject([{ byMs: -5_000 }]);
  });
});
