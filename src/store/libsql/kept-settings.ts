import { NO_SETTINGS, type SubscriptionSettings } from "../../domain/subscription-settings.ts";

/** Settings as they lie in the file: JSON of those that differ from none. */
export function keptSettings(settings: SubscriptionSettings): string | null {
  const named = Object.entries(settings).filter(
    ([name, value]) => value !== NO_SETTINGS[name as keyof SubscriptionSettings],
  );
  return named.length === 0 ? null : JSON.stringify(Object.fromEntries(named));
}

const MOST_READ = 10_000;
const read = new Map<string, SubscriptionSettings>();

/** The same object for the same text, as claims bring it by the thousand. */
export function settingsOf(kept: string | null): SubscriptionSettings {
  if (kept === null) return NO_SETTINGS;
  const known = read.get(kept);
  if (known !== undefined) return known;
  const settings = { ...NO_SETTINGS, ...(JSON.parse(kept) as Partial<SubscriptionSettings>) };
  if (read.size >= MOST_READ) read.clear();
  read.set(kept, settings);
  return settings;
}
