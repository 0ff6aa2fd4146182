import type { BacklogCause, StatsBacklog } from "../../../domain/stats/stats.ts";
import { durationText, numberText, useNow } from "../../parts/time.tsx";
import { linkTo } from "../../parts/route.ts";

/** How it looks: what waits for a person is red. */
type Look = "danger" | "warn" | "accent" | "grey";
type Cause = readonly [cause: BacklogCause, words: string, why: string, look: Look];

/** All that keeps a delivery from its end, the worst first. */
export const CAUSES: readonly Cause[] = [
  ["blocked", "Behind a blocked one", "ordered ones wait for a person", "danger"],
  ["held", "Held", "paused or deactivated", "grey"],
  ["waiting", "Waiting", "for their retry, or behind another", "warn"],
  ["paced", "Paced", "by a rate, or for consumers", "warn"],
  ["busy", "Busy handlers", "behind others of their subscription", "grey"],
  ["delivering", "Being delivered", "an attempt is under way", "accent"],
  ["due", "Due", "to be sent next", "grey"],
];

/** What is unfinished now, by why it is, with the age of the oldest. */
export function Backlog({ backlog }: { readonly backlog: StatsBacklog }) {
  const now = useNow();
  const most = Math.max(1, ...CAUSES.map(([cause]) => backlog[cause].deliveries));
  return (
    <ul class="backlog panel">
      {CAUSES.map(([cause, words, why, look]) => {
        const { deliveries, since } = backlog[cause];
        return (
          <li key={cause}>
            <div>
              <a class="strong" href={linkTo(["deliveries"], { cause })}>
                {words}
              </a>
              <span class="strong">{numberText(deliveries)}</span>
            </div>
            <div class="muted small">
              <span>{deliveries === 0 && cause === "due" ? "none waits for evreg itself" : why}</span>
              <span>{since === null ? "–" : durationText(Math.max(0, now - Date.parse(since)))}</span>
            </div>
            <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
              <rect class="ground" width="100" height="1" />
              <rect class={look} width={(100 * deliveries) / most} height="1" />
            </svg>
          </li>
        );
      })}
    </ul>
  );
}
