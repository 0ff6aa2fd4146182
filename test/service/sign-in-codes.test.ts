import { expect, test } from "vitest";
import type { Principal } from "../../src/domain/token.ts";
import { systemRandom } from "../../src/runtime/clock.ts";
import { SignInCodes } from "../../src/service/tokens/sign-in-codes.ts";
import { ManualClock } from "../support/manual-clock.ts";

const of = (callerId: number): Principal => ({ name: `t${callerId}`, scopes: ["read"], callerId });

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

test.each([
  ["forward", 60 * 60_000],
  ["back", -60 * 60_000],
])("a code ends after two minutes, where the clock was set %s meanwhile", async (_, byMs) => {
  const clock = new ManualClock();
  const codes = new SignInCodes(clock, systemRandom);
  const [early, late] = [codes.issue(of(1)).code, codes.issue(of(1)).code];
  clock.set(clock.now() + byMs);
  clock.pass(2 * 60_000 - 1);
  await expect(codes.exchange(early, parts)).rejects.toThrow("given");
  clock.pass(1);
  await expect(codes.exchange(late, parts)).rejects.toMatchObject({ code: "unauthorized" });
});
