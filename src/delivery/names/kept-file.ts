import { readFile, stat } from "node:fs/promises";
import type { Clock } from "../../runtime/clock.ts";

/** How long a file is taken to be as it was. */
const LOOK_AFTER_MS = 5_000;

/** What a small text file of the system says, read anew when it has changed. One that cannot be read says nothing. */
export class KeptFile<T> {
  readonly #clock: Clock;
  readonly #path: string;
  readonly #parse: (text: string) => T;
  #version = "";
  #value: T;
  #lookedAtMs = -Infinity;
  #looking: Promise<void> | undefined;

  constructor(clock: Clock, path: string, parse: (text: string) => T) {
    this.#clock = clock;
    this.#path = path;
    this.#parse = parse;
    this.#value = parse("");
  }

  async read(): Promise<T> {
    // The clock may have been set back meanwhile.
    if (Math.abs(this.#clock.now() - this.#lookedAtMs) >= LOOK_AFTER_MS) {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
        this.#lookedAtMs = this.#clock.now();
      });
      await this.#looking;
    }
    return this.#value;
  }

  async #look(): Promise<void> {
    try {
      const { mtimeMs, size, ino } = await stat(this.#path);
      const version = `${mtimeMs} ${size} ${ino}`;
      if (version === this.#version) return;
      this.#value = this.#parse(await readFile(this.#path, "utf8"));
      this.#version = version;
    } catch {
      this.#value = this.#parse("");
      this.#version = "";
    }
  }
}
