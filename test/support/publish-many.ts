import type { NewEvent } from "../../src/domain/event.ts";
import type { Evreg } from "../../src/evreg.ts";

/** Publishes the event so many times. */
export async function publishMany(
  { events }: Pick<Evreg, "events">,
  count: number,
  event: NewEvent,
): Promise<void> {
  for (let left = count; left > 0; left -= 500) {
    await events.publishBatch(Array.from({ length: Math.min(left, 500) }, () => event));
  }
}
