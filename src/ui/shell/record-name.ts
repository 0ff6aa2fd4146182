import { useEffect } from "preact/hooks";
import { shared } from "../api/shared.ts";

/** What the record is called whose number stands in the address; `null` where the address says it best. */
export const recordName = shared<string | null>(null);

/** Names the record that is shown, for the bar and the title. */
export function useRecordName(name: string | undefined): void {
  useEffect(() => {
    recordName.value = name ?? null;
    return () => {
      recordName.value = null;
    };
  }, [name]);
}
