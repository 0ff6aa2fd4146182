import { describe, expect, it } from "vitest";
import { InFlight } from "../../src/delivery/in-flight.ts";

describe("attempts under way", () => {
  it("are settled when all have ended, and at once when there is none", async () => {
    const inFlight = new InFlight();
    await inFlight.settled();
    const attempts = [1, 2].map(() => ({ interrupt: () => {}, bytes: 1 }));
    for (const attempt of attempts) inFlight.add(attempt);
    let isSettled = false;
    const settled = inFlight.settled().then(() => (isSettled = true));
    inFlight.delete(attempts[0]!);
    await Promise.resolve();
    expect([inFlight.size, isSettled]).toEqual([1, false]);
    inFlight.delete(attempts[1]!);
    await settled;
    expect([inFlight.size, inFlight.bytes]).toEqual([0, 0]);
  });

  it("are all interrupted, also when each ends at that moment", async () => {
    const inFlight = new InFlight();
    for (let count = 0; count < 3; count += 1) {
      const attempt = { interrupt: () => inFlight.delete(attempt), bytes: 1 };
      inFlight.add(attempt);
    }
    inFlight.interruptAll();
    await inFlight.settled();
    expect([inFlight.size, inFlight.bytes]).toEqual([0, 0]);
  });
});
