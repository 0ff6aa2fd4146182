import { EvregError } from "../domain/error.ts";
import { EVENT_LIMITS } from "../domain/event.ts";
import { itemsOf, MAX_LINE_BYTES, itemOn, settledBy, type Pending } from "./bulk-line.ts";
import { NOTHING_SETTLED, type BulkOptions, type BulkOutcome } from "./bulk-publisher.ts";

/**
 * Publishes all lines in one transaction, or none when any is refused.
 * @throws EvregError `too_large` when the lines do not fit into one batch
 */
export async function publishAllOrNothing(options: BulkOptions): Promise<BulkOutcome> {
  const batch: Pending[] = [];
  let bytes = 0;
  try {
    for await (const lines of options.lines) {
      for (const line of lines) {
        batch.push({ line, item: itemOn(line) });
        bytes += line.bytes?.length ?? 0;
        if (batch.length > EVENT_LIMITS.batchItems || bytes > MAX_LINE_BYTES) throw tooMany();
      }
    }
  } catch (error) {
    if (options.signal.aborted) return { ...NOTHING_SETTLED, end: "interrupted" };
    throw error;
  }
  const last = batch.at(-1)?.line;
  if (last === undefined) return { ...NOTHING_SETTLED, end: "all" };
  const how = { atomic: true, minimal: options.accepted === undefined };
  const settled = settledBy(batch, await options.publish(itemsOf(batch), how));
  for (const { line, error } of settled.refused) options.refused(line, error);
  if (settled.refused.length > 0)
    return { ...NOTHING_SETTLED, refused: settled.refused.length, end: "stopped" };
  const { accepted, events, replayed } = settled;
  await options.accepted?.(events);
  const end = { settledLine: last.number, settledBytes: last.endsAt, end: "all" as const };
  return { accepted, replayed, refused: 0, ...end };
}

function tooMany(): EvregError {
  const items = EVENT_LIMITS.batchItems.toLocaleString("en");
  return new EvregError(
    "too_large",
    `--atomic takes at most ${items} lines of together 16 MiB, and this input has more. Nothing was published. Leave --atomic out, and give each line an idempotency_key so that it can be sent again without harm.`,
    { limit: EVENT_LIMITS.batchItems },
  );
}
