import { toIso } from "../../runtime/clock.ts";

/** A record as its query answers it: the members `N` are numbers, times in milliseconds since the epoch and flags as 0 or 1. */
export type StoredRecord<T, N extends keyof T> = {
  readonly [K in keyof T]: K extends N ? (null extends T[K] ? number | null : number) : T[K];
};

export function isoOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : toIso(epochMs);
}
