import type { Sql } from "./sql.ts";

/** Where a stretch of rising times begins, because the clock was set back. */
export interface ClockStep {
  readonly event: number;
  readonly delivery: number;
  readonly noticedMs: number;
}

/** A row may be stamped this much later than the clock says, so that small corrections of it need no new stretch. */
export const CLOCK_SLACK_MS = 1_000;

export function insertSteps(sql: Sql, steps: readonly ClockStep[]): void {
  if (steps.length === 0) return;
  sql.run(
    `INSERT INTO clock_step (first_event, first_delivery, noticed_ms)
      SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)`,
    JSON.stringify(steps.map(({ event, delivery, noticedMs }) => [event, delivery, noticedMs])),
  );
}
