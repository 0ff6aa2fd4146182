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
