import { describe, expect, it } from "vitest";
import { firstWindow, grown, shrunk } from "../../src/delivery/window.ts";

describe("a window", () => {
  it("begins small, and no larger than allowed", () => {
    expect(firstWindow(64)).toBe(4);
    expect(firstWindow(1)).toBe(1);
  });

  it("is as large as allowed after as many answers", () => {
    let window = firstWindow(64);
    for (let answers = 0; answers < 60; answers += 1) window = grown(window, 64);
    expect(window).toBe(64);
    expect(grown(window, 64)).toBe(64);
  });

  it("halves with each attempt that gets no answer, and never closes", () => {
    const windows = [64];
    while (windows.length < 9) windows.push(shrunk(windows.at(-1)!));
    expect(windows).toEqual([64, 32, 16, 8, 4, 2, 1, 1, 1]);
  });
});
