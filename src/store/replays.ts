import type { ReplaySelection, ReplayStatus } from "../domain/replay.ts";
import type { Replay } from "../domain/replay.ts";

/** Replays: events of the past that are sent to a subscription again. */
export interface ReplayStore {
  /** What a replay of a living subscription would go through: the events of its action there are now. */
  plan(query: ReplayRequest): Promise<ReplayPlan | undefined>;
  /** How many deliveries the plan would send. Holds up no write; rejects with the signal's reason once that is aborted. */
  count(plan: ReplayPlan, signal?: AbortSignal): Promise<number>;
  /**
   * Records a replay, running from now on. `conflict` while another one of the subscription runs, or when that has
   * another action by now; `undefined` when it was deleted meanwhile.
   */
  start(plan: ReplayPlan, nowMs: number): Promise<Replay | undefined>;
  /**
   * Makes the next of its deliveries due, as far as there is room, and notes how far it has come, in one transaction:
   * a step that was done is never repeated.
   */
  advance(id: number, step: ReplayStep): Promise<ReplayProgress>;
  running(): Promise<readonly RunningReplay[]>;
  find(id: number): Promise<Replay | undefined>;
  /** Newest first. */
  list(query: ReplaySelector): Promise<readonly Replay[]>;
  /** What it made due stays so. A cancelled one is answered as it is; `conflict` when it ended otherwise. */
  cancel(id: number, nowMs: number): Promise<Replay | undefined>;
}

export interface ReplayRequest {
  readonly subscription: number;
  readonly selection: ReplaySelection;
  readonly fromMs: number;
  /** Without it, all events from `fromMs` on that there are. */
  readonly toMs?: number;
}

export interface ReplayPlan extends ReplayRequest {
  readonly actionId: number;
  /** Which events it goes through. Only the store that made the plan can read it. */
  readonly scope: unknown;
}

export interface ReplayStep {
  readonly nowMs: number;
  /** Makes so many due at most. */
  readonly most: number;
  /** And only until the subscription has so many that are due; those under way count. */
  readonly mostDue: number;
  /** Nothing is made due while the subscription has so many unfinished deliveries, due or waiting for a retry. */
  readonly mostUnfinished: number;
  /** To be noted as what there is to send. */
  readonly total?: number;
}

export interface ReplayProgress {
  /** Deliveries made due by this step. */
  readonly queued: number;
  /**
   * `going`: there is more to do at once; `crowded`: the subscription has enough to do for now; `paused`: its subscription
   * is not active; `ended`: it does not run any more.
   */
  readonly state: "going" | "crowded" | "paused" | "ended";
}

export interface RunningReplay {
  readonly rowid: number;
  /** With what remains of its scope. */
  readonly plan: ReplayPlan;
  /** `null` until it was counted; before that, no step was made. */
  readonly total: number | null;
}

export interface ReplaySelector {
  readonly subscription?: number;
  readonly status?: ReplayStatus;
  readonly applications?: readonly string[];
  readonly limit: number;
  readonly after?: number;
}
