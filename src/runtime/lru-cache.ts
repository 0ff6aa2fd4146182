/** A map that keeps the entries used last, as many as their sizes allow. */
export class Recent<V> {
  readonly #entries = new Map<string, V>();
  readonly #maxSize: number;
  readonly #sizeOf: (value: V) => number;
  #size = 0;
  /** Asked for again and again, it stays where it is. */
  #newest: string | undefined;

  /** @param sizeOf where entries differ; otherwise `maxSize` is their number. The same for the same entry */
  constructor(maxSize: number, sizeOf: (value: V) => number = () => 1) {
    this.#maxSize = maxSize;
    this.#sizeOf = sizeOf;
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

  /** The entry itself is kept, however large it is. */
  set(key: string, value: V): void {
    this.delete(key);
    this.#entries.set(key, value);
    this.#size += this.#sizeOf(value);
    this.#newest = key;
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= this.#maxSize || oldest === key) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const value = this.#entries.get(key);
    if (value === undefined) return;
    this.#entries.delete(key);
    this.#size -= this.#sizeOf(value);
  }

  entries(): IterableIterator<[string, V]> {
    return this.#entries.entries();
  }
}
