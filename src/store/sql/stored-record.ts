import { EvregError } from "../../domain/error.ts";
import { NO_SETTINGS, type SubscriptionSettings } from "../../domain/subscription-settings.ts";
import { toIso } from "../../runtime/clock.ts";
import { parseText } from "../../json/parse.ts";

/** A record as its query answers it: the members `N` are numbers, times in milliseconds since the epoch and flags as 0 or 1. */
export type StoredRecord<T, N extends keyof T> = {
  readonly [K in keyof T]: K extends N ? (null extends T[K] ? number | null : number) : T[K];
};

export function isoOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : toIso(epochMs);
}

/**
 * Parses JSON that evreg has written itself.
 * @throws EvregError `internal` for what it could not have written
 */
export function parseStored(text: string): unknown {
  try {
    return parseText(text);
  } catch {
    const message =
      "A record in the data file has JSON that evreg could not have written. `evreg doctor --deep` tells which; restore a backup from before.";
    throw new EvregError("internal", message);
  }
}

export function settingsToJson(settings: SubscriptionSettings): string | null {
  const named = Object.entries(settings).filter(
    ([name, value]) => value !== NO_SETTINGS[name as keyof SubscriptionSettings],
  );
  return named.length === 0 ? null : JSON.stringify(Object.fromEntries(named));
}

export function settingsFromJson(text: string | null): SubscriptionSettings {
  return text === null
    ? NO_SETTINGS
    : { ...NO_SETTINGS, ...(parseStored(text) as Partial<SubscriptionSettings>) };
}
