import type { BulkState } from "./bulk-publisher.ts";
import { progressBar } from "./progress-bar.ts";

/** Shows how far a bulk has come, on stderr, and lets lines be told in between. */
export interface BulkProgress {
  update(state: BulkState): void;
  /** One line on stderr; with a bar shown, above it. */
  tell(line: string): void;
  stop(): void;
}

const withoutBar: BulkProgress = {
  update() {},
  tell: (line) => void process.stderr.write(`${line}\n`),
  stop() {},
};

/** A bar when stderr is a terminal, nothing elsewhere. @param size bytes of input, where known */
export async function bulkProgress(size: number | undefined): Promise<BulkProgress> {
  const counts = "{published} published{there}, {refused} refused";
  const format = size === undefined ? counts : `{bar} {percentage}% | ${counts} | {eta_formatted} left`;
  const bar = await progressBar(format, { published: 0, there: "", refused: 0 });
  if (bar === undefined) return withoutBar;
  return {
    update: ({ settledBytes, accepted, replayed, refused }) => {
      const there = replayed === 0 ? "" : `, ${replayed} already there`;
      bar.update(settledBytes, size ?? 1, { published: accepted - replayed, there, refused });
    },
    tell: (line) => bar.tell(line),
    stop: () => bar.stop(),
  };
}
