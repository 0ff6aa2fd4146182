import type { LRUCache } from "lru-cache";

/**
 * Notes what an entry takes by now, if it is still the cache's. `set` alone takes no new size for a value that the cache has, so the
 * entry is added again.
 */
export function resize<K extends {}, V extends {}>(
  cache: LRUCache<K, V>,
  key: K,
  value: V,
  size: number,
): void {
  if (cache.peek(key) !== value) return;
  cache.delete(key);
  cache.set(key, value, { size });
}
