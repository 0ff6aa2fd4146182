import type { BulkState } from "./bulk-publisher.ts";
import { behind } from "./bulk-summary.ts";
import { progressBar } from "./progress-bar.ts";
import { RecentRate } from "./recent-rate.ts";

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

export interface BulkProgressOptions {
  /** Bytes of input, where known. */
  readonly size: number | undefined;
  /** Where the bulk begins. */
  readonly from: BulkState;
  readonly nowMs: () => number;
}

/** A bar when stderr is a terminal, nothing elsewhere. */
export async function bulkProgress({ size, from, nowMs }: BulkProgressOptions): Promise<BulkProgress> {
  const counts = "{published} published{there}, {refused} refused, {rate}/s";
  const format = size === undefined ? counts : `{bar} {percentage}% | ${counts} | {left} left`;
  const lines = new RecentRate(nowMs);
  const bytes = new RecentRate(nowMs);
  const shown = (state: BulkState) => {
    const { settledBytes, accepted, replayed, refused } = behind(from, state);
    return {
      published: accepted - replayed,
      there: replayed === 0 ? "" : `, ${replayed} already there`,
      refused,
      rate: Math.round(lines.perS).toLocaleString("en"),
      left: timeLeft((size ?? 0) - settledBytes, bytes.perS),
    };
  };
  const note = (state: BulkState): void => {
    lines.reach(state.accepted + state.refused);
    bytes.reach(state.settledBytes);
  };
  note(from);
  const bar = await progressBar(format, shown(from));
  if (bar === undefined) return withoutBar;
  return {
    update: (state) => {
      note(state);
      bar.update(state.settledBytes, size ?? 1, shown(state));
    },
    tell: (line) => bar.tell(line),
    stop: () => bar.stop(),
  };
}

/** Such as `1h 4m`, `3m 20s` or `8s`; a dash while nothing can be said. */
function timeLeft(bytes: number, bytesPerS: number): string {
  if (bytesPerS <= 0) return "–";
  const seconds = Math.ceil(bytes / bytesPerS);
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
  return minutes > 0 ? `${minutes}m ${seconds % 60}s` : `${seconds}s`;
}
