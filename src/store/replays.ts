import type { Actor } from "../domain/audit.ts";
import type { ReplaySelection, ReplayStatus } from "../domain/replay.ts";
import type { Replay } from "../domain/replay.ts";
import type { EventRange } from "./events.ts";

/** Replays: past events that are sent to a subscription again. */
export interface ReplayStore {
  /** What a replay would go through: the events so far that the subscription's action stands for; `undefined` for a deleted one. */
  plan(query: ReplayRequest): Promise<ReplayPlan | undefined>;
  /** How many deliveries the plan would send. Blocks no write; rejects with the signal's reason once that is aborted. */
  count(plan: ReplayPlan, signal?: AbortSignal): Promise<number>;
  /**
   * Records a running replay. `conflict` while another one of the subscription runs, or when that has another action by now;
   * `undefined` when it was deleted meanwhile.
   */
  start(plan: ReplayPlan, nowMs: number, by?: Actor): Promise<Replay | undefined>;
  /** Makes the next deliveries due and stores the position, in one transaction: no step is repeated. */
  advance(id: number, step: ReplayStep): Promise<ReplayProgress>;
  running(): Promise<readonly RunningReplay[]>;
  find(id: number): Promise<Replay | undefined>;
  /** Newest first. */
  list(query: ReplaySelector): Promise<readonly Replay[]>;
  /** What it made due stays so. A cancelled one is answered as it is; `conflict` when it ended otherwise. */
  cancel(id: number, nowMs: number, by?: Actor): Promise<Replay | undefined>;
}

export interface ReplayRequest {
  readonly subscription: number;
  readonly selection: ReplaySelection;
  readonly fromMs: number;
  /** Without it, all events from `fromMs` on that there are. */
  readonly toMs?: number;
}

export interface ReplayPlan extends ReplayRequest {
  /** Of the subscription: a name or a pattern. */
  readonly action: string;
  /** Which events it goes through, rising. */
  readonly scope: readonly EventRange[];
}

export interface ReplayStep {
  readonly nowMs: number;
  /** Most deliveries to make due. */
  readonly maxQueued: number;
  /** Most due deliveries of the subscription, those under way included. */
  readonly maxDue: number;
  /** Most unfinished deliveries of the subscription, those that wait for a retry included. */
  readonly maxUnfinished: number;
  /** To be stored as what there is to send. */
  readonly total?: number;
}

export interface ReplayProgress {
  /** Deliveries made due by this step. */
  readonly queued: number;
  /**
   * `running`: take the next step; `saturated`: the subscription has enough to do for now; `paused`: it is not active;
   * `ended`: the replay runs no more.
   */
  readonly state: "running" | "saturated" | "paused" | "ended";
}

export interface RunningReplay {
  readonly rowid: number;
  /** With its remaining scope. */
  readonly plan: ReplayPlan;
  /** `null` until it is counted, before the first step. */
  readonly total: number | null;
}

export interface ReplaySelector {
  readonly subscription?: number;
  readonly status?: ReplayStatus;
  readonly applications?: readonly string[];
  readonly limit: number;
  readonly after?: number;
}
