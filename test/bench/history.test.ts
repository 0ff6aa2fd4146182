import { expect, it } from "vitest";
import { eventsOf, HISTORY_ACTIONS, HISTORY_EVENTS, historyUntil } from "./history.ts";

it("gives each event of the history to one action, and no time in the future", () => {
  expect(HISTORY_ACTIONS.reduce((sum, { action }) => sum + eventsOf(action), 0)).toBe(HISTORY_EVENTS);
  const { startMs, stepMs } = historyUntil(1_000_000_000_000);
  expect(startMs + HISTORY_EVENTS * stepMs).toBeLessThan(1_000_000_000_000);
});
