/** @param meanwhile the answer where a computation comes back to its own object */
export function memoize<K extends object, V>(
  compute: (key: K) => V,
  meanwhile?: { readonly value: V },
): (key: K) => V {
  const cache = new WeakMap<K, V>();
  return (key) => {
    const known = cache.get(key);
    if (known !== undefined || cache.has(key)) return known as V;
    if (meanwhile !== undefined) cache.set(key, meanwhile.value);
    const value = compute(key);
    cache.set(key, value);
    return value;
  };
}
