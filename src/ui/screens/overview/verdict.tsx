import type { Stats } from "../../../domain/stats/stats.ts";
import { durationText } from "../../parts/time.tsx";

/** How things are in one sentence, and what needs a person. */
export function Verdict({ stats }: { readonly stats: Stats | undefined }) {
  const p99 = stats?.totals.latency_ms.p99 ?? null;
  return (
    <header class="head">
      <div class="what">
        <h1>Overview</h1>
        <p class="lede">{p99 !== null && `99 of 100 deliveries arrive within ${durationText(p99)}.`}</p>
      </div>
    </header>
  );
}
