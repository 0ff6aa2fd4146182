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
    for (const [duration_ms, dns_ms, connect_ms, first_byte_ms] of [
      [0, null, null, null],
      [0, 0, 0, 0],
      [5, 100, 100, 100],
      [1_000_000, 1, 1, 999_998],
    ] as const) {
      const odd = attempt({ duration_ms, dns_ms, connect_ms, first_byte_ms });
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

const schedule = { max_retries: 5, retry_schedule: null, on_exhausted: null };
const second = (more: Partial<Attempt> = {}): Attempt => attempt({ attempt: 2, ...more });
const BY_A_PERSON = "then sent again by a person or a replay";

it.each([
  [attempt(), 40, schedule, "sent again at once"],
  [second(), 2_050, schedule, "waited 2 s, by its schedule"],
  [second(), 60_100, { ...schedule, retry_schedule: [0, 60_000] }, "waited 1 min, by its schedule"],
  [second(), 700, schedule, "waited 700 ms: sent again before its time"],
  [second({ status_code: 503 }), 30_000, schedule, "waited 30 s: with 503 the handler asked for a pause"],
  [second(), 7_200_000, schedule, "waited 2 h: 2 s by its schedule, the rest in the queue, paused or failed"],
  [second({ outcome: "delivered" }), 60_000, schedule, `waited 1 min, ${BY_A_PERSON}`],
  [second({ outcome: "returned" }), 60_000, schedule, "waited 1 min, and was taken up again"],
  [second(), 780_000, { ...schedule, max_retries: 1 }, `waited 13 min, ${BY_A_PERSON}`],
  [second(), 5_000, undefined, "waited 5 s"],
])("says why it waited between two attempts (%#)", (before, waitedMs, own, text) => {
  expect(gapText(before, after(waitedMs), own, null)).toBe(text);
});

it("holds a wait against the server's schedule where the subscription has none", () => {
  expect(gapText(second(), after(60_100), schedule, [0, 60_000])).toBe("waited 1 min, by its schedule");
});

it("offers what the state of a delivery allows", () => {
  expect(canRetry({ status: "held" })).toBe(false);
  expect(canRetry({ status: "failed" })).toBe(true);
  expect(canSkip({ status: "waiting", last_error: "timeout" })).toBe(true);
  expect(canSkip({ status: "pending", last_error: null })).toBe(false);
});
