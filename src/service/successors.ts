import type { Store } from "../store/store.ts";

/** As many steps as are followed; nobody waits for the rest of a longer chain. */
const MOST_STEPS = 20;

/** The names a successor leads to, itself first, as far as they are there; it ends before one comes again. */
export async function* chainFrom(
  store: Store,
  successor: string | null,
): AsyncGenerator<{ readonly action: string; readonly isRetired: boolean }> {
  const seen = new Set<string>();
  for (let name = successor; name !== null && !seen.has(name) && seen.size < MOST_STEPS;) {
    seen.add(name);
    const found = await store.findAction(name);
    if (found === undefined) return;
    yield { action: name, isRetired: found.retired };
    name = found.successor;
  }
}

/** The first of the chain that takes events: what to publish to instead. `null` when there is none. */
export async function firstOpen(store: Store, successor: string | null): Promise<string | null> {
  for await (const { action, isRetired } of chainFrom(store, successor)) if (!isRetired) return action;
  return null;
}
