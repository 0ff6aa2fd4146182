import { useMemo } from "preact/hooks";
import { pastTime } from "../../domain/formats.ts";

/**
 * The times of a list's filter as the API takes them. A time such as `1h` ago stays where it was when it was asked for, so
 * that a list that is read again keeps its beginning.
 */
export function useTimeRange(query: Readonly<Record<string, string>>): {
  readonly from: string | undefined;
  readonly to: string | undefined;
} {
  const { from, to } = query;
  return useMemo(() => {
    const now = Date.now();
    return { from: from && pastTime(from, now), to: to && pastTime(to, now) };
  }, [from, to]);
}
