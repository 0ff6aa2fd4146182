import { useEffect } from "preact/hooks";
import { shared } from "../api/shared.ts";

/** What the record is called whose number stands in the address; `null` where the address says it best. */
export const recordName = shared<readonly string[] | null>(null);

/** Names the record that is shown, for the bar and the title. @param parts none of them is known before the record is */
export function useRecordName(...parts: readonly (string | undefined)[]): void {
  useEffect(() => {
    const known = parts.filter((part) => part !== undefined);
    recordName.value = known.length === 0 ? null : known;
    return () => {
      recordName.value = null;
    };
  }, parts);
}
