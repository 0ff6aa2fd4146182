import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type * as Interruption from "../../src/cli/io/interruption.ts";

let interruption: typeof Interruption;
const exits: (number | undefined)[] = [];
const NAMES = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

beforeEach(async () => {
  // It is of one process, which ends with it.
  vi.resetModules();
  interruption = await import("../../src/cli/io/interruption.ts");
  interruption.listenForSigint();
  exits.length = 0;
  vi.useFakeTimers({ toFake: ["performance"] });
  vi.spyOn(process, "exit").mockImplementation((code) => exits.push(Number(code)) as never);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  for (const name of NAMES) process.removeAllListeners(name);
});

function send(name: NodeJS.Signals, afterMs = 1_000): void {
  vi.advanceTimersByTime(afterMs);
  process.emit(name, name);
}

test.each(NAMES)("%s asks once for an orderly end, and says its name", (name) => {
  const signal = interruption.interruption(["SIGTERM", "SIGHUP"]);
  send(name);
  expect(signal.reason).toMatchObject({ name: "AbortError", message: name });
  expect(exits).toEqual([]);
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const)("a second one, %s, ends at once with %i, unless it was sent twice", (name, code) => {
  interruption.interruption(["SIGTERM", "SIGHUP"]);
  send("SIGTERM");
  send(name, 20);
  expect(exits).toEqual([]);
  send(name, 130);
  expect(exits).toEqual([code]);
});

test("Ctrl-C ends at once what does not end in order, and what takes the signals itself never hears of it", () => {
  send("SIGINT");
  expect(exits).toEqual([130]);
  interruption.listenForSigint();
  interruption.releaseSigint();
  send("SIGINT");
  expect(exits).toEqual([130]);
});
