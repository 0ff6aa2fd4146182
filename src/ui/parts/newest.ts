import { useCallback, useEffect, useState } from "preact/hooks";

/**
 * A live list that never moves what somebody reads: new rows come by themselves while the list stands untouched at its
 * top; else they wait until they are asked for. Rows that are shown are brought up to date where they stand.
 * @param path of what is listed; another one begins anew
 * @param newest the newest page as it was read last
 * @param isRead whether a record of it is looked at
 * @returns `newer`: how many wait, as text; `""` for none
 */
export function useNewest<Row>(
  path: string,
  newest: readonly Row[] | undefined,
  keyOf: (row: Row) => number,
  isRead: boolean,
): { readonly rows: readonly Row[] | undefined; readonly newer: string; readonly showNewer: () => void } {
  const [kept, setKept] = useState<{ path: string; rows: readonly Row[] } | undefined>();
  const shown = kept?.path === path ? kept.rows : undefined;
  const top = shown?.[0];
  const waiting = top === undefined ? 0 : (newest ?? []).filter((row) => keyOf(row) > keyOf(top)).length;

  useEffect(() => {
    if (newest === undefined) return;
    const untouched = !isRead && scrollY < 8 && document.activeElement?.closest("table") === null;
    if (shown === undefined || shown.length === 0 || untouched) return setKept({ path, rows: newest });
    const byKey = new Map(newest.map((row) => [keyOf(row), row]));
    setKept({ path, rows: shown.map((row) => byKey.get(keyOf(row)) ?? row) });
  }, [newest, path]);

  const showNewer = useCallback(() => {
    if (newest !== undefined) setKept({ path, rows: newest });
    scrollTo({ top: 0 });
  }, [newest, path]);
  const isAll = newest !== undefined && newest.length > 0 && waiting === newest.length;
  return {
    rows: shown ?? newest,
    newer: waiting === 0 ? "" : `${waiting}${isAll ? " or more" : ""}`,
    showNewer,
  };
}
