import { statSync } from "node:fs";
import { basename } from "node:path";
import { fileTimestamp } from "../../../runtime/clock.ts";
import { EngineFailure } from "../../sql/sql.ts";
import { logOf, move } from "./data-folder.ts";

/** Which file it is, whatever its name: its device and its number there. */
export type FileId = string;

/**
 * Answers which file is at a path, without opening it: closing the data file would drop the process's locks on it (see
 * `files/data-folder.ts`). `undefined` for what cannot be seen, which is as bad as gone.
 */
export function fileIdAt(path: string): FileId | undefined {
  return look(path)?.id;
}

/**
 * Checks that the open data file is still at its path, and no shorter. The system lets it be removed, moved, replaced or cut
 * while it is open. What is committed then goes where no later start would find it, and nothing else fails.
 * `docs/troubleshooting.md` promises that it is noticed before anything more is acknowledged.
 */
export class FileGuard {
  readonly id: FileId;
  readonly #path: string;
  /** The length of the data file, which only grows. */
  #bytes = 0;

  /** @param path of the data file, which the engine has open by now */
  constructor(path: string, id: FileId) {
    this.id = id;
    this.#path = path;
  }

  get logPath(): string {
    return logOf(this.#path);
  }

  /**
   * @param makeWhole called for a file that is not at its path any more
   * @throws EngineFailure `failed` when it is not there, or was cut short
   */
  check(makeWhole: () => void): void {
    const file = look(this.#path);
    if (file?.id !== this.id) {
      makeWhole();
      throw moved(this.#path);
    }
    if (file.bytes < this.#bytes) throw this.#cutShort();
    this.#bytes = file.bytes;
  }

  /**
   * Renames what is left of the data file. At its path the engine would move the log into it when it closes, and the next
   * start might go on with that.
   */
  #cutShort(): EngineFailure {
    const aside = `${this.#path}.cut-short-${fileTimestamp(Date.now())}`;
    let next = "restore a backup before the next start, as what is left of the data is damaged";
    try {
      move(this.#path, aside);
      next = `what is left of the data file is now ${basename(aside)}, beside its log; restore a backup`;
    } catch {
      // The file stays where it is, as the message says.
    }
    const what = basename(this.#path);
    return new EngineFailure("failed", `${what} was cut short while evreg was running; ${next}`);
  }
}

/** @throws EngineFailure `failed` when another file than this is there, or none */
export function mustBeAt(path: string, id: FileId): void {
  if (fileIdAt(path) !== id) throw moved(path);
}

function look(path: string): { readonly id: FileId; readonly bytes: number } | undefined {
  try {
    const { dev, ino, size } = statSync(path, { bigint: true });
    return { id: `${dev}:${ino}`, bytes: Number(size) };
  } catch {
    return undefined;
  }
}

/** Names the file without its folder, as the message is shown to anyone who requests the server's health. */
function moved(path: string): EngineFailure {
  const message = `the data file ${basename(path)} was removed, moved or replaced while evreg was running; put the right one back first, as the next start uses whatever is there`;
  return new EngineFailure("failed", message);
}
