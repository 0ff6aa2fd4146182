import type { PageMeta } from "../domain/event.ts";
import type { Answer } from "../evreg.ts";
import { type Progress, progressBar } from "./io/progress.ts";
import { counted } from "./io/text.ts";

type List<T> = (query: object) => Promise<Answer<readonly T[], Partial<PageMeta>>>;

/**
 * One page of a listing. A search may end before its page is full, as it has looked at much: then it goes on until it is
 * full or nothing is left, and a terminal is shown how far it is.
 */
export async function wholePage<T>(
  list: List<T>,
  query: object,
  pageSize: number,
): Promise<Answer<readonly T[], Partial<PageMeta>>> {
  let line: Progress | undefined;
  const matching: T[] = [];
  let searched = 0;
  let next = {};
  try {
    for (;;) {
      const answer = await list({ ...query, ...next });
      const { meta = {} } = answer;
      if (meta.next === undefined) return answer;
      matching.push(...answer.data);
      searched += meta.searched ?? 0;
      if (meta.next === null || matching.length >= pageSize) {
        return { data: matching, meta: { ...meta, per_page: pageSize, searched } };
      }
      const text = `${counted(matching.length, "event")} found in ${searched.toLocaleString("en")} so far`;
      line ??= await progressBar("{text}", { text });
      line.update(0, 1, { text });
      next = { after: meta.next, limit: pageSize - matching.length };
    }
  } finally {
    line?.stop();
  }
}

/** Where a search has come to. */
export function searchLine(shown: number, { searched = 0, next }: Partial<PageMeta>, again: string): string {
  const counts = `${counted(shown, "event")} found in ${searched.toLocaleString("en")}`;
  return typeof next === "number"
    ? `${counts}. Go on: ${again} --after ${next}`
    : `${counts}; no more behind.`;
}
