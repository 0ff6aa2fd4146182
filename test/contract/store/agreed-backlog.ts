import { expect } from "vitest";
import { BACKLOG_CAUSES } from "../../../src/domain/stats/stats.ts";
import { omitUndefined } from "../../../src/service/requests.ts";
import type { Backlog, BacklogOf, DeliveryQueue, DeliverySelection } from "../../../src/store/queue.ts";

/**
 * What is unfinished, counted, after the list of each cause has shown as many: newest first, the same page by page, and each
 * delivery for one cause only.
 */
export async function agreedBacklog(
  queue: Pick<DeliveryQueue, "backlog" | "list">,
  nowMs: number,
  of: BacklogOf = {},
): Promise<Backlog> {
  const counted = await queue.backlog(nowMs, of);
  const { applications, subscription, action } = of;
  const selection = omitUndefined<DeliverySelection>({ applications, subscription, action, limit: 500 });
  const all: number[] = [];
  for (const name of BACKLOG_CAUSES) {
    const listed = { ...selection, cause: { name, nowMs } };
    const ids = (await queue.list(listed)).map(({ rowid }) => rowid);
    expect([name, ids.length]).toEqual([name, counted[name].deliveries]);
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));
    const pages: number[] = [];
    for (let [row] = await queue.list({ ...listed, limit: 1 }); row !== undefined;) {
      pages.push(row.rowid);
      [row] = await queue.list({ ...listed, limit: 1, after: row.rowid });
    }
    expect(pages).toEqual(ids);
    all.push(...ids);
  }
  expect(new Set(all).size).toBe(all.length);
  return counted;
}
