import { describe, expect, it } from "vitest";
import type { Attempt } from "../../src/domain/delivery.ts";
import { barParts, canRetry, canSkip, gapText, partsText } from "../../src/ui/records/attempt-times.ts";
import { attempt } from "./attempt.ts";

describe("an attempt's bar", () => {
  it("has its parts one behind the other, on the scale of the longest attempt", () => {
    const parts = barParts(attempt({ dns_ms: 10, connect_ms: 20, first_byte_ms: 60 }), 200);
    expect(parts).toEqual([
      { kind: "dns", x: 0, width: 5 },
      { kind: "connect", x: 5, width: 10 },
      { kind: "first", x: 15, width: 30 },
      { kind: "rest", x: 45, width: 5 },
    ]);
  });

  it("is lost from where nothing more was heard", () => {
    const timedOut = attempt({ status_code: null, error_code: "timeout", dns_ms: 1, duration_ms: 2_000 });
    expect(barParts(timedOut, 2_000).at(-1)).toEqual({ kind: "lost", x: 1, width: 99 });
    expect(partsText(timedOut)).toBe("DNS 1 ms, then no answer for 2 s");
  });

  it("stays within its width, and can be seen, however its parts add up", () => {
    for (const odd of [
      attempt({ duration_ms: 0 }),
      attempt({ duration_ms: 0, dns_ms: 0, connect_ms: 0, first_byte_ms: 0 }),
      attempt({ duration_ms: 5, dns_ms: 100, connect_ms: 100, first_byte_ms: 100 }),
      attempt({ duration_ms: 1_000_000, dns_ms: 1, connect_ms: 1, first_byte_ms: 999_998 }),
    ]) {
      const parts = barParts(odd, odd.duration_ms);
      expect(parts.length).toBeGreaterThan(0);
      expect(new Set(parts.map(({ kind }) => kind)).size).toBe(parts.length);
      for (const { x, width } of parts) {
        expect(width).toBeGreaterThan(0);
        expect(x + width).toBeLessThanOrEqual(100.001);
      }
    }
  });
});

const after = (waitedMs: number): Attempt =>
  attempt({ attempt: 3, started_at: new Date(Date.UTC(2026, 0, 1) + 100 + waitedMs).toISOString() });

describe("the wait between two attempts", () => {
  const schedule = { max_retries: 5, retry_schedule: null, on_exhausted: null };
  const second = attempt({ attempt: 2 });

  it.each([
    [attempt(), 40, "sent again at once"],
    [second, 2_050, "waited 2 s, by its schedule"],
    [second, 700, "waited 700 ms: sent again before its time"],
    [
      attempt({ attempt: 2, status_code: 503 }),
      30_000,
      "waited 30 s: with 503 the handler asked for a pause",
    ],
    [second, 7_200_000, "waited 2 h: 2 s by its schedule, the rest in the queue, paused or failed"],
    [
      attempt({ attempt: 2, outcome: "delivered" }),
      60_000,
      "waited 1 min, then sent again by a person or a replay",
    ],
    [attempt({ attempt: 2, outcome: "returned" }), 60_000, "waited 1 min, and was taken up again"],
  ])("is said with its reason (%#)", (before, waitedMs, text) => {
    expect(gapText(before, after(waitedMs), schedule, null)).toBe(text);
  });

  it("is held against the server's schedule where the subscription has none", () => {
    expect(gapText(second, after(60_100), schedule, [0, 60_000])).toBe("waited 1 min, by its schedule");
  });

  it("ended when the attempt before was the last of its retries", () => {
    const last = { max_retries: 1, retry_schedule: null, on_exhausted: null };
    expect(gapText(second, after(780_000), last, null)).toBe(
      "waited 13 min, then sent again by a person or a replay",
    );
  });

  it("has no reason where the subscription is gone", () => {
    expect(gapText(second, after(5_000), undefined, null)).toBe("waited 5 s");
  });
});

it("offers what the state of a delivery allows", () => {
  expect(canRetry({ status: "held" })).toBe(false);
  expect(canRetry({ status: "failed" })).toBe(true);
  expect(canSkip({ status: "waiting", last_error: "timeout" })).toBe(true);
  expect(canSkip({ status: "pending", last_error: null })).toBe(false);
});
