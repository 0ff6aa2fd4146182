import { describe, expect, it } from "vitest";
import { FIRST_WINDOW, grown, shrunk } from "../../src/delivery/window.ts";

describe("a window", () => {
  it("is as large as allowed after as many answers", () => {
    let window = FIRST_WINDOW;
    for (let answers = 1; answers < 64; answers += 1) window = grown(window, 64);
    expect(window).toBe(64);
    expect(grown(window, 64)).toBe(64);
    expect(grown(FIRST_WINDOW, 1)).toBe(1);
  });

  it("halves with each attempt that gets no answer, and never closes", () => {
    const windows = [64];
    while (windows.length < 9) windows.push(shrunk(windows.at(-1)!));
    expect(windows).toEqual([64, 32, 16, 8, 4, 2, 1, 1, 1]);
  });
});
