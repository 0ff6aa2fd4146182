import { NO_SETTINGS, type SubscriptionSettings } from "../../domain/subscription-settings.ts";
import { parseKept } from "./text.ts";

/** Settings as they lie in the file: JSON of those that differ from none. */
export function keptSettings(settings: SubscriptionSettings): string | null {
  const named = Object.entries(settings).filter(
    ([name, value]) => value !== NO_SETTINGS[name as keyof SubscriptionSettings],
  );
  return named.length === 0 ? null : JSON.stringify(Object.fromEntries(named));
}

/** Characters of all the texts: filters are long, and what is read of them takes several times as much. */
const MOST_READ_LENGTH = 16_000_000;
const read = new Map<string, SubscriptionSettings>();
let readLength = 0;

/** The same object for the same text, as claims bring it by the thousand. */
export function settingsOf(kept: string | null): SubscriptionSettings {
  if (kept === null) return NO_SETTINGS;
  const known = read.get(kept);
  if (known !== undefined) return known;
  const settings = { ...NO_SETTINGS, ...(parseKept(kept) as Partial<SubscriptionSettings>) };
  if (readLength + kept.length > MOST_READ_LENGTH) {
    read.clear();
    readLength = 0;
  }
  readLength += kept.length;
  read.set(kept, settings);
  return settings;
}
