import type { BacklogCause, StatsBacklog } from "../../../domain/stats/stats.ts";
import { durationText, numberText, useNow } from "../../parts/time.tsx";
import { linkTo } from "../../shell/route.ts";

interface Cause {
  readonly cause: BacklogCause;
  readonly words: string;
  readonly why: string;
  /** How it looks: what waits for a person is red. */
  readonly look: "danger" | "warn" | "accent" | "grey";
}

/** All that keeps a delivery from its end, the worst first. */
export const CAUSES: readonly Cause[] = [
  {
    cause: "blocked",
    words: "Behind a blocked one",
    why: "ordered ones wait for a person",
    look: "danger",
  },
  {
    cause: "held",
    words: "Held",
    why: "paused or deactivated",
    look: "grey",
  },
  {
    cause: "waiting",
    words: "Waiting",
    why: "for their retry, or behind another",
    look: "warn",
  },
  {
    cause: "paced",
    words: "Paced",
    why: "by a rate, or for consumers",
    look: "warn",
  },
  {
    cause: "busy",
    words: "Busy handlers",
    why: "behind others of their subscription",
    look: "grey",
  },
  {
    cause: "delivering",
    words: "Being delivered",
    why: "an attempt is under way",
    look: "accent",
  },
  { cause: "due", words: "Due", why: "to be sent next", look: "grey" },
];

/** What is unfinished now, by why it is, with the age of the oldest. */
export function Backlog({ backlog }: { readonly backlog: StatsBacklog }) {
  const now = useNow();
  const most = Math.max(1, ...CAUSES.map(({ cause }) => backlog[cause].deliveries));
  return (
    <ul class="backlog panel">
      {CAUSES.map(({ cause, words, why, look }) => {
        const { deliveries, since } = backlog[cause];
        return (
          <li key={cause}>
            <div>
              <a class="strong" href={linkTo(["deliveries"], { cause })}>
                {words}
              </a>
              <b>{numberText(deliveries)}</b>
            </div>
            <div class="muted">
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
