import { ensureServiceActions } from "./catalog/actions.ts";
import { deleteExpiredSecrets } from "./catalog/credentials.ts";
import type { Work } from "./operation.ts";
import { moveWaitsAtStart } from "./queue/move-waits.ts";

/** What the log is to say of data that were opened. */
export interface Notice {
  readonly level: "info" | "warn";
  readonly details: object;
  readonly message: string;
}

/**
 * Brings data that were opened up to date, each step in a transaction of its own.
 * @param place what messages call the data
 */
export async function prepareData(
  write: <T>(step: (work: Work) => Promise<T>) => Promise<T>,
  nowMs: number,
  place: string,
): Promise<{ readonly isNew: boolean; readonly notices: readonly Notice[] }> {
  const notices: Notice[] = [];
  const isNew = await write((work) => ensureServiceActions(work, nowMs));
  const setBack = await write((work) => moveWaitsAtStart(work, nowMs));
  if (setBack !== undefined) {
    const message = `The clock is behind the latest time in ${place}, and what waits was moved with it. Let a time service set the clock.`;
    notices.push({ level: "warn", details: setBack, message });
  }
  await write((work) => deleteExpiredSecrets(work, nowMs));
  return { isNew, notices };
}

/** Says that deliveries were under way at somebody who is gone. */
export function releasedNotice(deliveries: number): readonly Notice[] {
  if (deliveries === 0) return [];
  const message = "Deliveries that were under way at a crash are due again.";
  return [{ level: "info", details: { deliveries }, message }];
}
