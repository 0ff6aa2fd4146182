import type { Replay, ReplayStatus } from "../../../domain/replay.ts";
import { askJson } from "../../api/request.ts";
import { noted } from "../../api/resource.ts";
import { SubscriptionName } from "../../parts/delivery-acts.tsx";
import type { State } from "../../parts/status.tsx";
import { numberText } from "../../parts/time.tsx";
import { confirm } from "../../shell/confirm.tsx";
import { sayError } from "../../shell/toast.tsx";

export const STATES: Readonly<Record<ReplayStatus, State>> = {
  running: "delivering",
  done: "delivered",
  cancelled: "cancelled",
  failed: "failed",
};

export const SELECTIONS: Readonly<Record<Replay["selection"], string>> = {
  failed: "Those that failed",
  waiting: "Those that waited",
  missed: "Those that were missed",
  all: "All",
};

const WIDTH = 100;

/** How far a replay is, as a bar and in numbers; what did not end well says so. */
export function Progress({ of }: { readonly of: Replay }) {
  const { total, queued, skipped, status } = of;
  if (total === null) return <span class="muted">being counted</span>;
  const isDone = status === "done";
  const share = total === 0 ? 1 : Math.min(1, (queued + skipped) / total);
  return (
    <span class="progress">
      <svg viewBox={`0 0 ${WIDTH} 8`} preserveAspectRatio="none" aria-hidden="true">
        <rect class="track" width={WIDTH} height="8" />
        <rect class={isDone ? "done" : status} width={(isDone ? 1 : share) * WIDTH} height="8" />
      </svg>
      <span>
        {status === "cancelled" && "stopped at "}
        {numberText(queued)} of {numberText(total)}
        {skipped > 0 && `, ${numberText(skipped)} left out`}
      </span>
    </span>
  );
}

/** Asks, and ends it. Answers nothing: the list shows what became of it. */
export async function cancelReplay(replay: Replay, done: () => void): Promise<void> {
  const yes = await confirm({
    title: `Cancel replay ${replay.rowid}?`,
    body: (
      <>
        <p>
          {numberText(replay.queued)} deliveries to{" "}
          <strong class="strong">
            <SubscriptionName of={replay} />
          </strong>{" "}
          are due already, and are sent all the same. The others are not.
        </p>
        <p>Another replay of the same events goes on with those that are left.</p>
      </>
    ),
    act: "Cancel the replay",
    keep: "Let it run",
    danger: true,
  });
  if (!yes) return;
  try {
    await askJson(`/v1/replays/${replay.rowid}/cancel`, { method: "POST" });
  } catch (error) {
    sayError(noted(error));
  }
  done();
}
