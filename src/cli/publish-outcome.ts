import type { Delivery } from "../domain/delivery.ts";
import { EXIT } from "./exit-code.ts";
import { progressOf } from "./follow-line.ts";
import type { Followed } from "./follow.ts";
import { nextCommand } from "./next-command.ts";
import { note } from "./output.ts";

/**
 * What waiting has shown, for programs: `timeout` and `interrupted` say nothing about the deliveries that were left, which
 * go on. `none`: there was no delivery to wait for. `unknown`: they could not be looked at.
 */
export type PublishOutcome = KnownOutcome | "unknown";
type KnownOutcome = "delivered" | "failed" | "held" | "timeout" | "interrupted" | "none";

export function outcomeOf({ deliveries, end }: Followed): KnownOutcome {
  if (end !== "final") return end;
  if (deliveries.length === 0) return "none";
  return deliveries.every(isWell) ? "delivered" : "failed";
}

/** What was waited by, and what is known of deliveries that wait behind another. */
export interface Waited {
  readonly timeoutS: number | undefined;
  /** Sentences. */
  readonly blocks: readonly string[];
}

/** Says what the person should know of it, and answers the exit code. */
export function verdict(followed: Followed, eventId: number, { timeoutS, blocks }: Waited): number {
  const { deliveries } = followed;
  const later = `See how it goes on: ${nextCommand(`events deliveries ${eventId}`)}`;
  const outcome = outcomeOf(followed);
  switch (outcome) {
    case "delivered":
    case "none":
      return EXIT.done;
    case "interrupted":
      note(`Interrupted; event ${eventId} is published all the same. ${later}`);
      return EXIT.interrupted;
    case "timeout": {
      const rest = blocks.length > 0 ? blocks.join(" ") : "What is left goes on while a server runs.";
      note(
        `Timed out after ${timeoutS} s: not every delivery came to its end (${progressOf(deliveries)}). ${rest} ${later}`,
      );
      return EXIT.failed;
    }
    case "held":
      note(
        `The rest is held until its subscription is active again: ${nextCommand(`subscriptions update ${heldBy(deliveries)} --active`)}. ${later}`,
      );
      return EXIT.failed;
    case "failed": {
      const missed = deliveries.filter((delivery) => !isWell(delivery));
      note(
        `Failed: ${missed.length} of ${deliveries.length} deliveries came to an end without success. See why: ${nextCommand(`deliveries get ${missed[0]?.rowid}`)}. Send it again: ${nextCommand(`deliveries retry ${missed[0]?.rowid}`)}`,
      );
      return EXIT.failed;
    }
    default:
      return outcome satisfies never;
  }
}

/** One that its subscription's filter kept back is where it should be. */
function isWell({ status }: Delivery): boolean {
  return status === "delivered" || status === "filtered";
}

function heldBy(deliveries: readonly Delivery[]): number | undefined {
  return deliveries.find(({ status }) => status === "held")?.subscription_id;
}
