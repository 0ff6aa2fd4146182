import { KeyStack } from "./duplicate-keys.ts";

const INITIAL_DEPTH = 128;

const OBJECT = 1;
const ESCAPED = 2;

/**
 * The objects and arrays that are open around the place a scan has come to, by depth from 1 (at 0 there is none). In
 * arrays that are used again: an object for each would be most of what a scan leaves to collect.
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
