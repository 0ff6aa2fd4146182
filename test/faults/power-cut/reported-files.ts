import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Image, Moment, Recording } from "./recording.ts";

interface Told {
  readonly path: string;
  readonly from: Moment;
  /** `undefined` where it was told that there is none. */
  readonly bytes: Buffer | undefined;
}

/** Files of which a program said that it wrote or removed them, held to what a power cut left. */
export class ReportedFiles {
  readonly #recording: Recording;
  readonly #all: Told[] = [];

  constructor(recording: Recording) {
    this.#recording = recording;
  }

  /**
   * Notes a file as it is now, after the program has ended well or said so; until `changes` it must be found like this.
   * @param path below the recorded folder
   */
  note(path: string): void {
    this.#all.push({ path, from: this.#recording.moment(), bytes: contents(this.#recording.folder, path) });
  }

  /** Notes the copies of the data file that evreg has made in this folder. Answers how many there are. */
  noteCopies(folder: string): number {
    const names = readdirSync(join(this.#recording.folder, folder));
    const copies = names.filter((name) => name.includes(".before-"));
    for (const name of copies) this.note(`${folder}/${name}`);
    return copies.length;
  }

  /** The next command may change these files: until it ends, they are as before or as it leaves them. */
  changes(...paths: readonly string[]): void {
    for (const path of paths) this.#ends.push({ path, at: this.#recording.moment() });
  }

  readonly #ends: { path: string; at: Moment }[] = [];

  get count(): number {
    return this.#all.length;
  }

  expectIn({ folder, moment }: Image): void {
    for (const { path, from, bytes } of this.#all) {
      const isOver = this.#ends.some((end) => end.path === path && end.at >= from && end.at < moment);
      if (from > moment || isOver) continue;
      const found = contents(folder, path);
      const isSame = bytes === undefined ? found === undefined : found?.equals(bytes) === true;
      expect(isSame, `${path}, which the program said it ${bytes === undefined ? "removed" : "wrote"}`).toBe(
        true,
      );
    }
  }
}

function contents(folder: string, path: string): Buffer | undefined {
  try {
    return readFileSync(join(folder, path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
