import { EventEmitter } from "node:events";
import { describe, expect, test } from "vitest";
import { listenForStop, type StopSignal } from "../../src/runtime/process.ts";

function setUp() {
  const source = new EventEmitter();
  const exits: number[] = [];
  let nowMs = 1_000;
  const signals = listenForStop(
    (code) => void exits.push(code),
    source,
    () => nowMs,
  );
  const send = (signal: StopSignal, afterMs: number): void => {
    nowMs += afterMs;
    source.emit(signal, signal);
  };
  return { source, exits, signals, send };
}

describe("stop signals", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s asks once for an orderly stop", async (signal) => {
    const { signals, send, exits } = setUp();
    send(signal, 0);
    expect(await signals.first).toBe(signal);
    expect(exits).toEqual([]);
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("a second one, %s, ends at once with %i", (signal, code) => {
    const { send, exits } = setUp();
    send("SIGTERM", 0);
    send(signal, 150);
    expect(exits).toEqual([code]);
  });

  test("a signal sent by both a terminal and npm counts once", () => {
    const { send, exits } = setUp();
    send("SIGINT", 0);
    send("SIGINT", 20);
    expect(exits).toEqual([]);
    send("SIGINT", 100);
    expect(exits).toEqual([130]);
  });

  test("are ignored after release", () => {
    const { source, signals } = setUp();
    signals.release();
    expect(source.eventNames()).toEqual([]);
  });
});
