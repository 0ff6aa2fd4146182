import { describe, expect, it } from "vitest";
import { FIRST_WINDOW, Window } from "../../src/delivery/limits.ts";

/** A handler that is asked for as much as the window lets in, round after round. */
function fill(window: Window, rounds: number, tookMs: (underWay: number, nth: number) => number): number[] {
  const sizes: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { size } = window;
    for (let nth = 0; nth < size; nth += 1) window.answered(tookMs(size, nth), window.size);
    sizes.push(window.size);
  }
  return sizes;
}

describe("the window of a subscription", () => {
  it.each([30, 500])("grows to all it may have while answers take %i ms as ever", (tookMs) => {
    const window = new Window(512);
    expect(window.size).toBe(FIRST_WINDOW);
    // Doubled to 32, then by half each time.
    expect(fill(window, 14, () => tookMs).slice(0, 7)).toEqual([2, 4, 8, 16, 32, 48, 72]);
    expect(window.size).toBe(512);
    fill(window, 10, () => tookMs);
    expect(window.size).toBe(512);
  });

  it("does not grow beyond what a handler can be sent that answers at once", () => {
    const window = new Window(512);
    fill(window, 50, () => 20);
    expect(window.size).toBe(32);
  });

  it("grows all the same when answers take now 100 and now 500 ms, and some ten times as long", () => {
    const window = new Window(512);
    fill(window, 40, (_underWay, nth) => (nth % 50 === 0 ? 5_000 : 100 + ((nth * 37) % 400)));
    expect(window.size).toBeGreaterThan(400);
  });

  it("comes to what a handler can take that has work for 100 at a time, and stays there", () => {
    const window = new Window(512);
    const sizes = fill(window, 200, (underWay) => 200 * Math.max(1, underWay / 100));
    expect(Math.max(...sizes)).toBeLessThan(260);
    expect(Math.min(...sizes.slice(20))).toBeGreaterThanOrEqual(100);
    expect(Math.max(...sizes.slice(20))).toBeLessThanOrEqual(230);
  });

  it("stays at what it always was for a handler that does one thing after the other", () => {
    const window = new Window(512);
    expect(Math.max(...fill(window, 100, (underWay) => 10 * underWay))).toBeLessThanOrEqual(110);
  });

  it("learns anew what a handler takes that has become slower for good", () => {
    const window = new Window(512);
    fill(window, 20, () => 100);
    const sizes = fill(window, 60, () => 400);
    expect(Math.min(...sizes)).toBeLessThan(50);
    expect(window.size).toBe(512);
  });

  it("does not grow beyond what is used, nor with answers that tell of faults", () => {
    const window = new Window(512);
    fill(window, 6, () => 100);
    const { size } = window;
    for (let count = 0; count < 1_000; count += 1) window.answered(100, 10);
    expect(window.size).toBe(size);
    for (let count = 0; count < 1_000; count += 1) window.faulted();
    expect(window.size).toBe(32);
  });

  it("halves with each attempt that gets no answer, and never closes", () => {
    const window = new Window(64);
    fill(window, 10, () => 50);
    const sizes = [window.size];
    while (sizes.length < 9) {
      window.halve();
      sizes.push(window.size);
    }
    expect(sizes).toEqual([64, 32, 16, 8, 4, 2, 1, 1, 1]);
  });

  it("is never more than its subscription asked for", () => {
    const window = new Window(512);
    fill(window, 14, () => 50);
    window.limitTo(3);
    fill(window, 10, () => 50);
    expect(window.size).toBe(3);
  });
});
