import { keyText } from "./nodes.ts";

/** Above this many keys a `Set` of strings is used, so that the table below stays small. */
const HASHED_KEYS = 2_048;
/** Keys made to collide would make the table's probes grow with the square; beyond this many a key, the `Set` decides. */
const PROBES_PER_KEY = 8;

const INITIAL_KEYS = 256;
const MAX_CACHED_KEYS = 65_536;

const slots = new Int32Array(HASHED_KEYS * 2);
const hashes = new Int32Array(HASHED_KEYS);

/**
 * The keys of the objects now open, as spans between the quotes. An object's own keys always lie together at the end
 * when it closes, as the objects inside it have taken theirs away by then.
 */
export class KeyStack {
  top = 0;
  starts = new Int32Array(INITIAL_KEYS);
  ends = new Int32Array(INITIAL_KEYS);

  /** Empties it, and gives back the memory of an unusually large document. */
  clear(): void {
    this.top = 0;
    if (this.starts.length <= MAX_CACHED_KEYS) return;
    this.starts = new Int32Array(INITIAL_KEYS);
    this.ends = new Int32Array(INITIAL_KEYS);
  }

  push(start: number, end: number): void {
    if (this.top === this.starts.length) {
      this.starts = grown(this.starts);
      this.ends = grown(this.ends);
    }
    this.starts[this.top] = start;
    this.ends[this.top] = end;
    this.top++;
  }
}

function grown(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(array.length * 2);
  larger.set(array);
  return larger;
}

const INITIAL_DEPTH = 128;

const OBJECT = 1;
const ESCAPED = 2;

/**
 * The objects and arrays that are open around the place a scan has come to, by depth from 1 (at 0 there is none). In
 * arrays that are used again: an object for each would be the larger part of a scan's garbage.
 */
export class OpenContainers {
  /** How many are open. */
  depth = 0;
  /** The keys of those that are objects. */
  readonly keys = new KeyStack();
  /** Where the keys of each begin. */
  keyBases = new Int32Array(INITIAL_DEPTH);
  #flags = new Uint8Array(INITIAL_DEPTH);

  clear(): void {
    this.depth = 0;
    this.keys.clear();
  }

  /** Answers its depth. */
  push(isObject: boolean): number {
    const depth = this.depth + 1;
    if (depth === this.#flags.length) this.#grow();
    this.depth = depth;
    this.keyBases[depth] = this.keys.top;
    this.#flags[depth] = isObject ? OBJECT : 0;
    return depth;
  }

  /** Closes the innermost one, its keys with it; answers the depth of the one around it. */
  pop(): number {
    this.keys.top = this.keyBases[this.depth]!;
    this.depth -= 1;
    return this.depth;
  }

  isObject(depth: number): boolean {
    return (this.#flags[depth]! & OBJECT) !== 0;
  }

  /** Notes that a key of it holds an escape. */
  markEscaped(depth: number): void {
    this.#flags[depth]! |= ESCAPED;
  }

  isEscaped(depth: number): boolean {
    return (this.#flags[depth]! & ESCAPED) !== 0;
  }

  #grow(): void {
    const keyBases = new Int32Array(this.keyBases.length * 2);
    keyBases.set(this.keyBases);
    this.keyBases = keyBases;
    const flags = new Uint8Array(this.#flags.length * 2);
    flags.set(this.#flags);
    this.#flags = flags;
  }
}

/**
 * Index (in the stack) of the first key from `base` up that repeats one before it, or -1.
 * @param escaped whether any of the keys holds an escape: then they are compared decoded
 */
export function findDuplicate(bytes: Uint8Array, keys: KeyStack, base: number, escaped: boolean): number {
  const count = keys.top - base;
  if (escaped || count > HASHED_KEYS) return findBySet(bytes, keys, base);
  return findByHash(bytes, keys, base);
}

function findByHash(bytes: Uint8Array, keys: KeyStack, base: number): number {
  const count = keys.top - base;
  const mask = (1 << (33 - Math.clz32(count))) - 1;
  slots.fill(0, 0, mask + 1);
  let probes = count * PROBES_PER_KEY;
  for (let index = 0; index < count; index++) {
    const hash = hashOf(bytes, keys.starts[base + index]!, keys.ends[base + index]!);
    hashes[index] = hash;
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (let held = slots[slot]!; held !== 0; held = slots[slot]!) {
      if (hashes[held - 1] === hash && sameKey(bytes, keys, base + held - 1, base + index))
        return base + index;
      if (--probes < 0) return findBySet(bytes, keys, base);
      slot = (slot + 1) & mask;
    }
    slots[slot] = index + 1;
  }
  return -1;
}

function findBySet(bytes: Uint8Array, keys: KeyStack, base: number): number {
  return new WideSearch(bytes, keys, base).advance(Infinity)!;
}

/** Keys of one object that are looked through in about a millisecond. */
export const WIDE_KEYS = 4_096;

/** The search in an object of very many keys, which can be interrupted. */
export class WideSearch {
  readonly #bytes: Uint8Array;
  readonly #keys: KeyStack;
  readonly #base: number;
  readonly #seen = new Set<string>();

  constructor(bytes: Uint8Array, keys: KeyStack, base: number) {
    this.#bytes = bytes;
    this.#keys = keys;
    this.#base = base;
  }

  /** Goes on for so many keys. `undefined` when it has not come to its end, else as `findDuplicate`. */
  advance(count: number): number | undefined {
    const keys = this.#keys;
    const seen = this.#seen;
    const from = this.#base + seen.size;
    const stop = Math.min(keys.top, from + count);
    for (let index = from; index < stop; index++) {
      seen.add(keyText(this.#bytes, keys.starts[index]!, keys.ends[index]!));
      if (seen.size !== index - this.#base + 1) return index;
    }
    return stop === keys.top ? -1 : undefined;
  }
}

function sameKey(bytes: Uint8Array, keys: KeyStack, a: number, b: number): boolean {
  let atA = keys.starts[a]!;
  let atB = keys.starts[b]!;
  const end = keys.ends[a]!;
  if (end - atA !== keys.ends[b]! - atB) return false;
  while (atA < end) if (bytes[atA++] !== bytes[atB++]) return false;
  return true;
}

function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return hash;
}
