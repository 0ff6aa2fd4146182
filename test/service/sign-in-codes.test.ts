import { expect, test } from "vitest";
import type { Principal } from "../../src/domain/token.ts";
import { systemRandom } from "../../src/runtime/clock.ts";
import { SignInCodes } from "../../src/service/tokens/sign-in-codes.ts";
import { ManualClock } from "../support/manual-clock.ts";

const of = (tokenId: number): Principal => ({ name: `t${tokenId}`, scopes: ["read"], tokenId });

test("codes are bounded, of each token and of all together, until they end", async () => {
  const clock = new ManualClock();
  const codes = new SignInCodes(clock, systemRandom);
  const refused = expect.objectContaining({ code: "rate_limited" }) as Error;
  for (let made = 0; made < 1_000; made += 1) codes.issue(of(Math.floor(made / 16)));
  expect(() => codes.issue(of(0))).toThrow(refused);
  // One that has none yet.
  expect(() => codes.issue(of(1_000))).toThrow(refused);
  await clock.advance(2 * 60_000);
  for (let made = 0; made < 16; made += 1) codes.issue(of(1_000));
  expect(() => codes.issue(of(1_000))).toThrow(refused);
});

const parts = { give: () => Promise.reject(new Error("given")), end: () => Promise.resolve() };

test("a code that is too old is refused, also behind an older one that ends later as the clock was set back", async () => {
  const clock = new ManualClock();
  const codes = new SignInCodes(clock, systemRandom);
  codes.issue(of(1));
  clock.set(clock.now() - 60 * 60_000);
  const late = codes.issue(of(1)).code;
  clock.set(clock.now() + 50 * 60_000);
  await expect(codes.exchange(late, parts)).rejects.toMatchObject({ code: "unauthorized" });
});

test("a code ends after two minutes, where the clock was set back meanwhile", async () => {
  let nowMs = Date.parse("2026-01-01T00:00:00.000Z");
  const timers = new Map<() => void, number>();
  const setTimer = (callback: () => void, delayMs: number): (() => void) => {
    timers.set(callback, delayMs);
    return () => timers.delete(callback);
  };
  const codes = new SignInCodes({ now: () => nowMs, setTimer }, systemRandom);
  const { code } = codes.issue(of(1));
  nowMs -= 60 * 60_000;
  expect([...timers.values()]).toEqual([2 * 60_000]);
  for (const callback of timers.keys()) callback();
  await expect(codes.exchange(code, parts)).rejects.toMatchObject({ code: "unauthorized" });
  await expect(codes.exchange(codes.issue(of(1)).code, parts)).rejects.toThrow("given");
});
