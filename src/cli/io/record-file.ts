import { appendFileSync, closeSync, fchmodSync, fstatSync, openSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import { encodeJson } from "../../json/raw-json.ts";
import { mustNotBeDataFile } from "../../runtime/data-files.ts";
import { syncFile } from "../../runtime/files.ts";
import { usageError } from "../usage-errors.ts";
import { mustNotBePipe, systemReason } from "./files.ts";

/** A file that a flag names, with a JSON record a line, which only its owner can read. */
export class RecordFile {
  readonly #flag: string;
  readonly #path: string;
  readonly #file: number;

  /**
   * @param flag such as `--rejects`
   * @param mode `a` adds to what the file holds, `w` replaces it
   * @throws EvregError `usage` for a path that cannot be written
   */
  constructor(flag: string, path: string, mode: "a" | "w") {
    this.#flag = flag;
    this.#path = path;
    mustNotBeDataFile(path);
    mustNotBePipe(path, "name a file");
    try {
      this.#file = openSync(path, mode, 0o600);
      // A device such as /dev/null has no mode to set.
      if (fstatSync(this.#file).isFile()) fchmodSync(this.#file, 0o600);
    } catch (error) {
      throw usageError(`${this.#unwritten(error)} Nothing was changed.`);
    }
  }

  /** @throws EvregError `unavailable` */
  add(record: object): void {
    this.#try(() => appendFileSync(this.#file, `${encodeJson(record)}\n`));
  }

  /** Has the disk hold what was added. @throws EvregError `unavailable` */
  sync(): void {
    this.#try(() => syncFile(this.#file, this.#path));
  }

  close(): void {
    closeSync(this.#file);
  }

  #try(act: () => void): void {
    try {
      act();
    } catch (error) {
      throw new EvregError("unavailable", this.#unwritten(error), {}, { cause: error });
    }
  }

  #unwritten(error: unknown): string {
    return `${this.#flag}: ${this.#path} cannot be written (${systemReason(error)}).`;
  }
}
