import { keyText } from "./nodes.ts";

/**
 * So many keys of one object are compared byte by byte. A `Set` of their texts takes three times as long for a whole scan, and a
 * third of the rate of a batch.
 */
const COMPARED_KEYS = 16;

/**
 * The objects and arrays that are open around the place a scan has come to, by depth from 1 (at 0 there is none). In lists of
 * numbers: an object for each would be the larger part of a scan's garbage.
 */
export class OpenContainers {
  /** How many are open. */
  depth = 0;
  readonly #isObject = [false];
  /** Where the keys of each begin in the two lists below. */
  readonly #bases = [0];
  /** The keys, as spans between their quotes. Those of the innermost object are the last. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  #top = 0;
  /** All keys of objects that have more than are compared, or one with an escape, by depth. */
  #texts: Map<number, Set<string>> | undefined;

  /** Whether the innermost one is an object. */
  get isObject(): boolean {
    return this.#isObject[this.depth]!;
  }

  /** Whether the innermost one has keys. */
  get hasKeys(): boolean {
    return this.#top > this.#bases[this.depth]! || this.#texts?.has(this.depth) === true;
  }

  push(isObject: boolean): void {
    const depth = (this.depth += 1);
    this.#isObject[depth] = isObject;
    this.#bases[depth] = this.#top;
  }

  /** Closes the innermost one, its keys with it. */
  pop(): void {
    this.#top = this.#bases[this.depth]!;
    this.#texts?.delete(this.depth);
    this.depth -= 1;
  }

  /** Adds a key to the innermost object. False if that has it already. */
  addKey(bytes: Uint8Array, start: number, end: number, isEscaped: boolean): boolean {
    const base = this.#bases[this.depth]!;
    const texts = this.#texts?.get(this.depth);
    if (texts === undefined && !isEscaped && this.#top - base < COMPARED_KEYS) {
      for (let at = base; at < this.#top; at++) if (this.#isSame(bytes, at, start, end)) return false;
      this.#starts[this.#top] = start;
      this.#ends[this.#top] = end;
      this.#top += 1;
      return true;
    }
    const all = texts ?? this.#startTexts(bytes, base);
    const { size } = all;
    return all.add(keyText(bytes, start, end)).size > size;
  }

  #startTexts(bytes: Uint8Array, base: number): Set<string> {
    const texts = new Set<string>();
    for (let at = base; at < this.#top; at++) texts.add(keyText(bytes, this.#starts[at]!, this.#ends[at]!));
    (this.#texts ??= new Map()).set(this.depth, texts);
    return texts;
  }

  #isSame(bytes: Uint8Array, at: number, start: number, end: number): boolean {
    let other = this.#starts[at]!;
    if (this.#ends[at]! - other !== end - start) return false;
    for (let place = start; place < end; place++) if (bytes[place] !== bytes[other++]) return false;
    return true;
  }
}
