import type { Action, ActionSettings, Admission, CompatibilityRule, Schemata } from "../domain/action.ts";
import type { SubscriptionSettings } from "../domain/subscription-settings.ts";
import type { Bearer } from "../domain/subscription.ts";
import type { ActionRevision } from "../domain/action.ts";
import type { Subscription } from "../domain/subscription.ts";

/** Actions with their revisions, and the subscriptions to them. */
export interface CatalogStore {
  /** `conflict` when the name is taken. */
  createAction(input: ActionRecord, nowMs: number): Promise<Action>;
  findAction(name: string): Promise<StoredAction | undefined>;
  /** By name, from the one that comes after `after`; `applications` limits to what a token may see. */
  listActions(query: ActionSelection): Promise<readonly Action[]>;
  /**
   * Applies a change. A schema or an application makes the next revision, settings make none. `stale` when the action was
   * changed since `expectedVersion`; `not_found` by `undefined`.
   */
  reviseAction(input: ActionChange, nowMs: number): Promise<Action | "stale" | undefined>;
  /** `undefined` when there is no such action or revision. */
  findRevision(action: string, revision: number): Promise<ActionRevision | undefined>;
  /** Newest first; `after` walks on to those older than it. None when there is no such action. */
  listRevisions(query: RevisionSelection): Promise<readonly ActionRevision[]>;

  /** `conflict` when (application, subscription, action) is taken, `not_found` when the action does not exist. */
  createSubscription(input: SubscriptionRecord, nowMs: number): Promise<Subscription>;
  findSubscription(id: number): Promise<Subscription | undefined>;
  /** The oldest first, from the one that comes after `after`. */
  listSubscriptions(query: SubscriptionSelection): Promise<readonly Subscription[]>;
  /**
   * Changes the members given. Turning `active` off holds its unfinished deliveries that are not under way; turning it
   * on makes held ones due as they were and clears `disabled_reason`. Turning it on (also when it is on) and another
   * `handler` clear `slowed_until` and `failing_since`. Another action ends its running replay. Turning `ordered` on puts
   * what waits in order, `conflict` when that is too much; off clears `slowed_until`. From `block` to `skip`, or with fewer
   * retries where it skips, its first fails that has none left. `conflict` and `not_found` as at create.
   */
  updateSubscription(id: number, patch: SubscriptionPatch, nowMs: number): Promise<Subscription | undefined>;
  /**
   * Puts a new secret in force; the one before stays valid for the overlap. `conflict` for an overlap while another one
   * lasts: of two secrets that receivers may have, neither must go unasked.
   */
  rotateSecret(
    id: number,
    rotation: { secret: string; overlapMs: number },
    nowMs: number,
  ): Promise<Subscription | undefined>;
  /**
   * Cancels its unfinished deliveries and its running replay; those and its history stay listable, and its secrets are
   * gone.
   */
  deleteSubscription(id: number, nowMs: number): Promise<Subscription | undefined>;
}

export interface ActionRecord extends Partial<CompatibilityRule> {
  readonly action: string;
  readonly application: string;
  readonly schemata: Schemata;
}

export interface StoredAction extends Action {
  /** The rowid again, under the name the tasks use. */
  readonly actionId: number;
  /** Whether its events are published by evreg about itself, see `domain/service-events.ts`. */
  readonly isBuiltIn: boolean;
  /** Counts its changes, those of settings too, from 1. */
  readonly version: number;
  /** Since when it is deprecated. */
  readonly deprecatedMs: number | null;
}

export interface ActionChange {
  readonly action: string;
  readonly schemata?: Schemata;
  /** Kept with the revision, where there will be a new one. */
  readonly admission?: Admission;
  readonly application?: string;
  readonly settings?: Partial<ActionSettings>;
  readonly expectedVersion: number;
}

export interface ActionSelection {
  readonly application?: string;
  readonly applications?: readonly string[];
  /** All of them unless told. */
  readonly limit?: number;
  readonly after?: string;
}

export interface RevisionSelection {
  readonly action: string;
  readonly limit: number;
  readonly after?: number;
}

export interface SubscriptionRecord {
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
  readonly maxRetries: number;
  readonly active: boolean;
  readonly secret: string;
  /** The secret, unless given. */
  readonly bearer?: BearerSetting;
  /** None, unless given. */
  readonly settings?: Partial<SubscriptionSettings>;
}

export type BearerSetting =
  | { readonly kind: Exclude<Bearer, "own"> }
  | { readonly kind: "own"; readonly token: string };

export interface SubscriptionSelection {
  readonly application?: string;
  readonly action?: string;
  readonly active?: boolean;
  readonly applications?: readonly string[];
  /** All of them unless told. */
  readonly limit?: number;
  readonly after?: number;
}

export interface SubscriptionPatch {
  readonly handler?: string;
  readonly maxRetries?: number;
  readonly active?: boolean;
  readonly action?: string;
  readonly bearer?: BearerSetting;
  /** Those that change. */
  readonly settings?: Partial<SubscriptionSettings>;
}
