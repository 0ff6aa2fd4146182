import type { Backup } from "../domain/backup.ts";
import { byteCount } from "../domain/byte-count.ts";
import { progressBar } from "./progress-bar.ts";

const SHOW_EVERY_BYTES = 4 * 1024 * 1024;

/** A backup's pieces until `signal`, with a bar on the terminal that stderr may be. */
export async function* withProgress(backup: Backup, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const { bytes } = backup;
  const shown = (done: number) => ({ done: byteCount(done), all: byteCount(bytes) });
  const bar = await progressBar("{bar} {percentage}% | {done} of {all} | {eta_formatted} left", shown(0));
  let done = 0;
  let told = 0;
  try {
    for await (const piece of backup.content()) {
      signal.throwIfAborted();
      yield piece;
      done += piece.length;
      if (done - told < SHOW_EVERY_BYTES) continue;
      told = done;
      bar?.update(done, bytes, shown(done));
    }
  } finally {
    bar?.stop();
  }
}
