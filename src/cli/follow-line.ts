import { DELIVERY_STATUSES, type Delivery } from "../domain/delivery.ts";
import { truncate } from "./text-width.ts";

/** Shows on stderr how deliveries come along while somebody waits for them: one line, redrawn in its place. */
export interface FollowLine {
  update(deliveries: readonly Delivery[]): void;
  /** Takes the line away, so that what comes next begins where it stood. */
  clear(): void;
}

const CLEAR_LINE = "\r\u001b[K";

const withoutLine: FollowLine = { update() {}, clear() {} };

/** A line when stderr is a terminal that can redraw one, nothing elsewhere. */
export function followLine(): FollowLine {
  const { stderr } = process;
  if (!stderr.isTTY || process.env["TERM"] === "dumb") return withoutLine;
  let shown = "";
  const clear = (): void => {
    process.off("exit", clear);
    if (shown !== "") stderr.write(CLEAR_LINE);
    shown = "";
  };
  return {
    update(deliveries) {
      // A line that fills the last cell may wrap, and a wrapped one cannot be redrawn.
      const text = truncate(progressOf(deliveries), Math.max(1, stderr.columns - 1));
      if (text === shown) return;
      // A second Ctrl-C ends the process at once; the line must not stay under the prompt all the same.
      if (shown === "") process.once("exit", clear);
      stderr.write(CLEAR_LINE + text);
      shown = text;
    },
    clear,
  };
}

/** `1 delivered, 2 waiting; 5 attempts so far` */
export function progressOf(deliveries: readonly Delivery[]): string {
  const counts = DELIVERY_STATUSES.map((status) => {
    const count = deliveries.filter((delivery) => delivery.status === status).length;
    return count === 0 ? [] : [`${count.toLocaleString("en")} ${status}`];
  });
  const attempts = deliveries.reduce((sum, { attempt }) => sum + attempt, 0);
  return `${counts.flat().join(", ")}; ${attempts.toLocaleString("en")} attempt${attempts === 1 ? "" : "s"} so far`;
}
