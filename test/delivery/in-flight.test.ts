import { describe, expect, it } from "vitest";
import { InFlight } from "../../src/delivery/in-flight.ts";

/** Takes on what the engine would, for a subscription that always has more and whose handler never answers. */
function hang(inFlight: InFlight, id: number): void {
  for (;;) {
    const { limit, perSubscription } = inFlight.share();
    const room = Math.min(limit, perSubscription - (inFlight.bySubscription.get(id) ?? 0));
    if (room <= 0) return;
    for (let count = 0; count < room; count += 1) inFlight.run(id, () => new Promise(() => {}));
  }
}

describe("the share of a subscription", () => {
  it("leaves room for the next however much those before take, with 30 handlers hanging", () => {
    const inFlight = new InFlight(256, 32, () => {});
    for (let id = 1; id <= 30; id += 1) {
      hang(inFlight, id);
      expect(inFlight.bySubscription.get(id)).toBeGreaterThanOrEqual(1);
      expect(inFlight.bySubscription.get(id)).toBeLessThanOrEqual(32);
      expect(inFlight.share().limit).toBeGreaterThan(0);
    }
  });

  it("leaves most to others however high the bound for one is", () => {
    const inFlight = new InFlight(64, 1_000, () => {});
    hang(inFlight, 1);
    expect(inFlight.size).toBeLessThanOrEqual(32);
  });

  it("lets the only attempt there may be happen", () => {
    const inFlight = new InFlight(1, 32, () => {});
    expect(inFlight.share()).toEqual({ limit: 1, perSubscription: 1 });
    hang(inFlight, 1);
    hang(inFlight, 2);
    expect(inFlight.size).toBe(1);
    expect(inFlight.share().limit).toBe(0);
  });

  it("comes back when attempts end, and tells so", async () => {
    let ended = 0;
    const inFlight = new InFlight(2, 2, () => {
      ended += 1;
      expect(inFlight.size).toBe(0);
    });
    inFlight.run(1, () => Promise.resolve());
    expect(inFlight.bySubscription.get(1)).toBe(1);
    await inFlight.settled();
    expect(ended).toBe(1);
    expect(inFlight.bySubscription.size).toBe(0);
  });

  it("passes an abort to all", async () => {
    const inFlight = new InFlight(8, 8, () => {});
    for (const id of [1, 2, 3]) {
      inFlight.run(
        id,
        (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
      );
    }
    inFlight.abortAll();
    await inFlight.settled();
    expect(inFlight.size).toBe(0);
  });
});
