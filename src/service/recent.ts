/** A map that keeps the entries used last, at most `maxEntries` of them. */
export class Recent<V> {
  readonly #entries = new Map<string, V>();
  readonly #maxEntries: number;
  /** Asked for again and again, it stays where it is. */
  #newest: string | undefined;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined || key === this.#newest) return value;
    // A Map iterates in the order of insertion, so whatever is put in again becomes the last to go.
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#newest = key;
    return value;
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#newest = key;
    if (this.#entries.size <= this.#maxEntries) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  entries(): IterableIterator<[string, V]> {
    return this.#entries.entries();
  }
}
