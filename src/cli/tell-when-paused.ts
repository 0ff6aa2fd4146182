import type { Evreg } from "../evreg.ts";
import { nextCommand } from "./next-command.ts";
import { note } from "./output.ts";

/** More subscriptions are not asked about: who has many paused sees it by the first. */
const MAX_PAUSED_ASKED = 20;

/**
 * For replays that run on no further, as their subscriptions are paused.
 * @param subscriptions whose replays are running
 */
export async function tellWhenPaused(evreg: Evreg, subscriptions: Iterable<number>): Promise<void> {
  for (const id of [...new Set(subscriptions)].slice(0, MAX_PAUSED_ASKED)) {
    // A token may be allowed to write and not to read.
    const subscription = await evreg.subscriptions.get(id).catch(() => undefined);
    if (subscription?.data.active === false) {
      note(
        `Subscription ${id} is paused: the replay waits until it is active again: ${nextCommand(`subscriptions update ${id} --active`)}`,
      );
    }
  }
}
