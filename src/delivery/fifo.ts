/** How many empty items are collected before they are cut off. */
const CUT_AT = 256;

/**
 * First in, first out. Not a Set: each table that a Set empties refers to the next one, so once V8 has taken one for
 * long-lived, it retains all that follow. Empty items are cut off by the hundred, as each cut moves the whole list.
 */
export class Fifo<T> {
  readonly #items: (T | undefined)[] = [];
  #first = 0;

  get size(): number {
    return this.#items.length - this.#first;
  }

  get head(): T | undefined {
    return this.#items[this.#first];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#items[this.#first] = undefined;
    this.#first += 1;
    if (this.#first === this.#items.length || this.#first >= CUT_AT) {
      this.#items.splice(0, this.#first);
      this.#first = 0;
    }
    return item;
  }
}
