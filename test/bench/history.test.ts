import { expect, it } from "vitest";
import { eventsOf, HISTORY_ACTIONS, HISTORY_SIZES, historyUntil } from "./history.ts";

it.each(Object.values(HISTORY_SIZES))(
  "gives each of %i events to one action, and no time in the future",
  (events) => {
    const history = historyUntil(1_000_000_000_000_000, events);
    expect(HISTORY_ACTIONS.reduce((sum, { action }) => sum + eventsOf(action, history), 0)).toBe(events);
    const { startMs, stepMs } = history;
    expect(startMs + events * stepMs).toBeLessThan(1_000_000_000_000_000);
  },
);
