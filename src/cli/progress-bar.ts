import type { MultiBar, SingleBar } from "cli-progress";

/** A bar on the terminal that stderr is, with lines told above it. */
export interface ProgressBar {
  /** @param shown the values of the format's placeholders */
  update(value: number, total: number, shown: object): void;
  tell(line: string): void;
  stop(): void;
}

const SHOW_CURSOR = "\u001b[?25h";
/** The bar turns wrapping off, as a wrapped bar cannot be redrawn. */
const LINES_WRAP = "\u001b[?7h";
const LINES_DO_NOT_WRAP = "\u001b[?7l";

/** `undefined` unless stderr is a terminal. @param shown the first values of the format's placeholders */
export async function progressBar(format: string, shown: object): Promise<ProgressBar | undefined> {
  if (!process.stderr.isTTY) return undefined;
  const { default: progress } = await import("cli-progress");
  const bars: MultiBar = new progress.MultiBar(
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
  const bar: SingleBar = bars.create(1, 0, shown);
  return {
    update(value, total, now) {
      if (bar.getTotal() !== total) bar.setTotal(total);
      bar.update(value, now);
    },
    tell: (line) => bars.log(`${LINES_WRAP}${line}${LINES_DO_NOT_WRAP}\n`),
    stop() {
      // What was told since the last redraw is written by a redraw only.
      bars.update();
      bars.stop();
      process.off("exit", restoreTerminal);
    },
  };
}

function restoreTerminal(): void {
  process.stderr.write(`${SHOW_CURSOR}${LINES_WRAP}\n`);
}
