import type { MultiBar, SingleBar } from "cli-progress";
import type { BulkState } from "./bulk-publisher.ts";

/** Shows how far a bulk has come, on stderr, and lets lines be told in between. */
export interface BulkProgress {
  update(state: BulkState): void;
  /** One line on stderr; with a bar shown, above it. */
  tell(line: string): void;
  stop(): void;
}

const SHOW_CURSOR = "\u001b[?25h";
/** The bar turns wrapping off, as a wrapped bar cannot be redrawn. */
const LINES_WRAP = "\u001b[?7h";
const LINES_DO_NOT_WRAP = "\u001b[?7l";

const withoutBar: BulkProgress = {
  update() {},
  tell: (line) => void process.stderr.write(`${line}\n`),
  stop() {},
};

/** A bar when stderr is a terminal, nothing elsewhere. @param size bytes of input, where known */
export async function bulkProgress(size: number | undefined): Promise<BulkProgress> {
  if (!process.stderr.isTTY) return withoutBar;
  const { default: progress } = await import("cli-progress");
  const counts = "{published} published{there}, {refused} refused";
  const bars: MultiBar = new progress.MultiBar(
    {
      stream: process.stderr,
      format: size === undefined ? counts : `{bar} {percentage}% | ${counts} | {eta_formatted} left`,
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
  const bar: SingleBar = bars.create(size ?? 1, 0, { published: 0, there: "", refused: 0 });
  return {
    update: ({ settledBytes, accepted, replayed, refused }) => {
      const there = replayed === 0 ? "" : `, ${replayed} already there`;
      bar.update(settledBytes, { published: accepted - replayed, there, refused });
    },
    tell: (line) => bars.log(`${LINES_WRAP}${line}${LINES_DO_NOT_WRAP}\n`),
    stop: () => {
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
