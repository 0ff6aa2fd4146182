import type { Delivery } from "../../domain/delivery.ts";
import { DELIVERY_STATUSES } from "../../model/delivery.ts";
import { byteCount } from "../../domain/formats.ts";
import type { Backup } from "../../domain/operations.ts";
import { note } from "./output.ts";
import { counted } from "./text.ts";

const SHOW_CURSOR = "\u001b[?25h";
/** The bar turns wrapping off, as a wrapped bar cannot be redrawn. */
const LINES_WRAP = "\u001b[?7h";
const LINES_DO_NOT_WRAP = "\u001b[?7l";

export interface Progress {
  /** @param now the values of the format's placeholders */
  update(value: number, total: number, now: object): void;
  /** Writes a line above the bar. */
  readonly log: (line: string) => void;
  stop(): void;
}

/** Where stderr is no terminal that can redraw a line. */
const LINES_ONLY: Progress = { update: () => undefined, log: note, stop: () => undefined };

/**
 * A bar on the terminal at stderr, or only a text that changes, by its format.
 * @param shown the first values of the format's placeholders
 */
export async function progressBar(format: string, shown: object): Promise<Progress> {
  if (!process.stderr.isTTY || process.env["TERM"] === "dumb") return LINES_ONLY;
  const { default: progress } = await import("cli-progress");
  const bars = new progress.MultiBar(
    {
      stream: process.stderr,
      format,
      barsize: 20,
      hideCursor: true,
      linewrap: false,
      clearOnComplete: true,
      gracefulExit: false,
      fps: 10,
    },
    progress.Presets.shades_classic,
  );
  // A second Ctrl-C ends the process at once; the terminal must get its cursor and its line breaks back all the same.
  process.once("exit", restoreTerminal);
  const bar = bars.create(1, 0, shown);
  return {
    update(value: number, total: number, now: object) {
      if (bar.getTotal() !== total) bar.setTotal(total);
      bar.update(value, now);
    },
    log: (line: string) => bars.log(`${LINES_WRAP}${line}${LINES_DO_NOT_WRAP}\n`),
    stop() {
      // Log lines since the last redraw are written only by a redraw.
      bars.update();
      bars.stop();
      process.off("exit", restoreTerminal);
    },
  };
}

function restoreTerminal(): void {
  process.stderr.write(`${SHOW_CURSOR}${LINES_WRAP}\n`);
}

/** A backup's pieces until `signal`, with a bar where stderr is a terminal. */
export async function* withProgress(backup: Backup, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const { bytes } = backup;
  const shown = (done: number) => ({ done: byteCount(done), all: byteCount(bytes) });
  const bar = await progressBar("{bar} {percentage}% | {done} of {all} | {eta_formatted} left", shown(0));
  let done = 0;
  try {
    for await (const piece of backup.content()) {
      signal.throwIfAborted();
      yield piece;
      done += piece.length;
      bar.update(done, bytes, shown(done));
    }
  } finally {
    bar.stop();
  }
}

/** `1 delivered, 2 waiting; 5 attempts so far` */
export function progressOf(deliveries: readonly Delivery[]): string {
  const counts = DELIVERY_STATUSES.map((status) => {
    const count = deliveries.filter((delivery) => delivery.status === status).length;
    return count === 0 ? [] : [`${count.toLocaleString("en")} ${status}`];
  });
  const attempts = deliveries.reduce((sum, { attempt }) => sum + attempt, 0);
  return `${counts.flat().join(", ")}; ${counted(attempts, "attempt")} so far`;
}
