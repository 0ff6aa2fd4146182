import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** What the record is called whose number stands in the address; `null` where the address says it best. */
export const recordName = signal<string | null>(null);

/** Names the record that is shown, for the bar and the title. */
export function useRecordName(name: string | undefined): void {
  useEffect(() => {
    recordName.value = name ?? null;
    return () => {
      recordName.value = null;
    };
  }, [name]);
}
