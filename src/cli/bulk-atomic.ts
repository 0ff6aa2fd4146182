import { EvregError } from "../domain/error.ts";
import { EVENT_LIMITS } from "../domain/event.ts";
import { itemsOf, MAX_LINE_BYTES, parseLine, settledBy, type Pending } from "./bulk-line.ts";
import type { BulkOptions, BulkOutcome } from "./bulk-publisher.ts";
import type { Line } from "./ndjson.ts";

/**
 * Publishes all lines in one transaction, or none when any is refused.
 * @throws EvregError `too_large` when the lines do not fit into one batch
 */
export async function publishAllOrNothing(options: BulkOptions): Promise<BulkOutcome> {
  const batch: Pending[] = [];
  let refused = 0;
  let bytes = 0;
  let last: Line | undefined;
  const nothing = { accepted: 0, settledLine: 0, settledBytes: 0, end: "stopped" as const };
  try {
    for await (const lines of options.lines) {
      for (const line of lines) {
        const item = parseLine(line);
        last = line;
        if (item instanceof EvregError) {
          refused += 1;
          options.refused(line, item.body());
          continue;
        }
        batch.push({ line, item });
        bytes += line.bytes?.length ?? 0;
        if (batch.length > EVENT_LIMITS.batchItems || bytes > MAX_LINE_BYTES) throw tooMany();
      }
    }
  } catch (error) {
    if (options.signal.aborted) return { ...nothing, refused, end: "interrupted" };
    throw error;
  }
  if (refused > 0) return { ...nothing, refused };
  const end = { settledLine: last?.number ?? 0, settledBytes: last?.endsAt ?? 0, end: "all" as const };
  if (batch.length === 0) return { accepted: 0, refused, ...end };
  const settled = settledBy(batch, await options.publish(itemsOf(batch), { atomic: true }));
  for (const { line, error } of settled.refused) options.refused(line, error);
  if (settled.refused.length > 0) return { ...nothing, refused: settled.refused.length };
  await options.accepted(settled.accepted.map(({ event }) => event));
  return { accepted: settled.accepted.length, refused, ...end };
}

function tooMany(): EvregError {
  const items = EVENT_LIMITS.batchItems.toLocaleString("en");
  return new EvregError(
    "too_large",
    `--atomic takes at most ${items} lines of together 16 MiB, and this input has more. Nothing was published. Leave --atomic out, and give each line an idempotency_key so that it can be sent again without harm.`,
    { limit: EVENT_LIMITS.batchItems },
  );
}
