import { styleText } from "node:util";
import { escapeControl, pad, textWidth, truncate } from "./text.ts";

export type Color = "green" | "yellow" | "red" | "dim";

export interface Cell {
  readonly text: string;
  readonly color?: Color | undefined;
}

const GAP = "  ";

/**
 * Lines whose columns stand below each other although nobody knows what is to come: a column grows with its texts, up to its part
 * of the line, and texts beyond that are cut.
 */
export class GrowingColumns {
  readonly #limits: readonly number[];
  readonly #width: number | undefined;
  readonly #widths: number[] = [];

  /**
   * @param limits most cells of each column but the last
   * @param width cells of a line; `undefined` when the reader is no terminal and nothing is cut
   */
  constructor(limits: readonly number[], width: number | undefined) {
    this.#limits = width === undefined ? limits.map(() => Infinity) : limits;
    this.#width = width;
  }

  line(cells: readonly Cell[]): string {
    let used = 0;
    const parts = cells.map(({ text, color }, at) => {
      const isLast = at === cells.length - 1;
      const room = this.#width === undefined ? Infinity : Math.max(0, this.#width - used);
      const limit = isLast ? room : Math.min(room, this.#limits[at] ?? Infinity);
      const shown = truncate(escapeControl(text), limit);
      const width = isLast ? 0 : Math.max(this.#widths[at] ?? 0, textWidth(shown));
      this.#widths[at] = width;
      used += width + GAP.length;
      const padded = pad(shown, Math.min(width, limit), "left");
      return color === undefined || shown === "" ? padded : styled(color, shown, padded);
    });
    return `${parts.join(GAP).trimEnd()}\n`;
  }
}

/** Leaves out the spaces around it, so that they can be cut off at the end of a line. */
function styled(color: Color, shown: string, padded: string): string {
  return styleText(color, shown, { stream: process.stdout }) + padded.slice(shown.length);
}
