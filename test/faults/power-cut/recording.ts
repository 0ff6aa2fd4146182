import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import { SeededRandom } from "../../support/seeded-random.ts";
import { Disk, type Leaving } from "./disk.ts";
import { type Note, notesIn } from "./notes.ts";

/** Of the images, where a test has no other. */
const SEED = 7;
/** So many are looked at side by side. */
const AT_ONCE = 2;

/** Why nothing can be recorded here; `undefined` where it can. */
export function cannotRecord(): string | undefined {
  if (process.platform !== "linux") return "needs Linux";
  return spawnSync("cc", ["--version"]).status === 0 ? undefined : "needs a C compiler, cc";
}

/** What a power cut left. */
export interface Image {
  /** What the recorded folder holds after the cut. */
  readonly folder: string;
  /** When the power was cut: what was told at this moment or before must hold. */
  readonly moment: number;
  /** To find it again. */
  readonly name: string;
}

/** How many bytes of notes there were when something was told. */
export type Moment = number;

/**
 * A folder of which everything is noted that is done in it by the programs that get `env`, from an empty folder on or from
 * what `prepare` put there, which counts as durable. Removed when the test that began it is over.
 */
export class Recording {
  readonly folder: string;
  readonly #place: string;
  readonly #notes: string;
  readonly #fail: string;
  /** As it was at the beginning, until the images are made. */
  readonly #disk: Disk;
  #images = 0;

  private constructor(place: string, disk: Disk) {
    this.#place = place;
    this.folder = join(place, "disk");
    this.#notes = join(place, "notes");
    this.#fail = join(place, "fail");
    this.#disk = disk;
  }

  static async begin(prepare: (folder: string) => unknown = () => undefined): Promise<Recording> {
    const place = mkdtempSync(join(tmpdir(), "evreg-cut-"));
    onTestFinished(() => rmSync(place, { recursive: true, force: true }));
    const folder = join(place, "disk");
    mkdirSync(folder);
    await prepare(folder);
    build(place);
    writeFileSync(join(place, "notes"), "");
    return new Recording(place, new Disk(folder));
  }

  /** For the programs whose doings are noted. */
  get env(): Record<string, string> {
    return {
      LD_PRELOAD: join(this.#place, "recorder.so"),
      RECORD_FOLDER: this.folder,
      RECORD_TO: this.#notes,
      RECORD_FAIL: this.#fail,
    };
  }

  /** Now. */
  moment(): Moment {
    return statSync(this.#notes).size;
  }

  /** From now on each fsync of a file fails. */
  failSyncs(): void {
    writeFileSync(this.#fail, "");
  }

  /** The disk is well again. */
  mend(): void {
    rmSync(this.#fail, { force: true });
  }

  /**
   * Images of cuts at random moments since `from`, and of one at the very end that left nothing but what was durable.
   * Each is removed when `look` is done with it. To be called once.
   */
  async images(
    count: number,
    look: (image: Image) => Promise<void>,
    { seed = SEED, from = 0 }: { readonly seed?: number; readonly from?: Moment } = {},
  ): Promise<void> {
    const numbers = new SeededRandom(seed);
    const random = (): number => numbers.fraction();
    const moments = this.#moments(count - 1, from, random);
    const disk = this.#disk;
    const under = new Set<Promise<unknown>>();
    const failures: Error[] = [];
    const cut = async (moment: Moment, leaving: Leaving): Promise<void> => {
      this.#images += 1;
      const folder = join(this.#place, `image-${this.#images}`);
      disk.write(folder, leaving, random);
      const name = `seed ${seed}, cut at ${moment}, leaving ${leaving}`;
      const looking = look({ folder, moment, name }).then(
        () => rmSync(folder, { recursive: true, force: true }),
        (cause: unknown) => {
          const what = cause instanceof Error ? cause.message : String(cause);
          failures.push(new Error(`${name}: ${what}`, { cause }));
        },
      );
      const one = looking.finally(() => under.delete(one));
      under.add(one);
      if (under.size >= AT_ONCE) await Promise.race(under);
      if (failures[0] !== undefined) throw failures[0];
    };
    let end = 0;
    try {
      const waiting = moments.values();
      let next = waiting.next();
      for (const note of notesIn(this.#notes)) {
        while (!next.done && next.value < note.end) {
          await cut(next.value, leavingAt(random));
          next = waiting.next();
        }
        disk.apply(note);
        end = note.end;
      }
      for (; !next.done; next = waiting.next()) await cut(end, leavingAt(random));
      await cut(end, "nothing");
    } finally {
      await Promise.all(under);
    }
    if (failures[0] !== undefined) throw failures[0];
  }

  /** Half of them anywhere, half at the calls that count: names, and what makes durable. */
  #moments(count: number, from: Moment, random: () => number): readonly Moment[] {
    const all: Moment[] = [];
    const telling: Moment[] = [];
    let before = 0;
    for (const note of notesIn(this.#notes)) {
      if (note.end > from) {
        all.push(note.end);
        if (isTelling(note)) telling.push(before, note.end);
      }
      before = note.end;
    }
    const pick = (ends: readonly Moment[]): Moment => ends[Math.floor(random() * ends.length)] ?? before;
    const picked = Array.from({ length: count }, (_, index) => pick(index % 2 === 0 ? all : telling));
    return picked.map((moment) => Math.max(moment, from)).toSorted((one, other) => one - other);
  }
}

function isTelling({ kind }: Note): boolean {
  return kind !== "written" && kind !== "cut";
}

function leavingAt(random: () => number): Leaving {
  const at = random();
  if (at < 0.35) return "nothing";
  return at < 0.45 ? "everything" : "some";
}

function build(place: string): void {
  const source = fileURLToPath(new URL("recorder.c", import.meta.url));
  const args = [
    "-shared",
    "-fPIC",
    "-O2",
    "-Wall",
    "-Werror",
    "-o",
    join(place, "recorder.so"),
    source,
    "-ldl",
    "-lpthread",
  ];
  const { status, stderr } = spawnSync("cc", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`the recorder does not compile:\n${stderr}`);
}

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
  readonly #ends: { path: string; at: Moment }[] = [];

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
