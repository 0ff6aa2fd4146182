import type { Action, ActionRevision, ActionSettings, CompatibilityMode } from "../domain/action.ts";
import type { Actor } from "../domain/audit.ts";
import type { SubscriptionSettings } from "../domain/subscription-settings.ts";
import type { Bearer, Subscription, SubscriptionQuery } from "../domain/subscription.ts";

/** Actions with their revisions, and the subscriptions to them. */
export interface CatalogStore {
  /** Creates an action. Rejects with `conflict` when the name is taken. */
  createAction(input: ActionRecord, nowMs: number, by?: Actor): Promise<StoredAction>;
  findAction(name: string): Promise<StoredAction | undefined>;
  /** Lists actions by name, those after `after`. `applications` limits them to what a token may see. */
  listActions(query: ActionSelection): Promise<readonly Action[]>;
  /** Of all actions, or of those that these applications own, the one that was probably meant by a name. */
  nearestAction(name: string, applications: readonly string[] | undefined): Promise<string | undefined>;
  /**
   * Applies a change to an action. A schema or an application makes the next revision, settings make none. Answers `stale`
   * when the action was changed since `expectedVersion`, and `undefined` when there is none.
   */
  reviseAction(input: ActionChange, nowMs: number, by?: Actor): Promise<StoredAction | "stale" | undefined>;
  /**
   * Lists the revisions of an action, newest first; `after` walks on to older ones. There are none where there is no such
   * action.
   */
  listRevisions(query: RevisionSelection): Promise<readonly ActionRevision[]>;

  /**
   * Creates a subscription to an action that there is, or to a pattern, which matches what comes. Rejects with `conflict` when
   * (application, subscription, action) is taken. The subscription shares the secret of others with its application, name and mode.
   */
  createSubscription(input: SubscriptionRecord, nowMs: number, by?: Actor): Promise<Subscription>;
  /** @param alsoDeleted whether to answer a deleted one too, as it was when it was deleted */
  findSubscription(id: number, alsoDeleted?: boolean): Promise<Subscription | undefined>;
  /** Lists subscriptions, oldest first, those after `after`. */
  listSubscriptions(query: SubscriptionSelection): Promise<readonly Subscription[]>;
  /**
   * Changes the members given; `conflict` as at create.
   * - `active` off holds its unfinished deliveries that are not under way; on makes them due as they were and clears
   *   `disabled_reason`. On, even if it was on, and another `handler` clear `slowed_until` and `failing_since`.
   * - Another action ends its running replay.
   * - `ordered` counts for what is recorded from then on.
   */
  updateSubscription(
    id: number,
    patch: SubscriptionPatch,
    nowMs: number,
    by?: Actor,
  ): Promise<Subscription | undefined>;
  /**
   * Sets a new secret for a subscription, and for the others of its application, name and mode. The previous one stays valid
   * for the overlap. Rejects with `conflict` for an overlap while another one lasts.
   */
  rotateSecret(
    id: number,
    rotation: SecretReplacement,
    nowMs: number,
    by?: Actor,
  ): Promise<Subscription | undefined>;
  /** Cancels its unfinished deliveries and its running replay, which stay listable with its history. Deletes its secrets. */
  deleteSubscription(id: number, nowMs: number, by?: Actor): Promise<Subscription | undefined>;
}

export interface ActionRecord extends Pick<Action, "action" | "application" | "schemata"> {
  readonly compatibility?: CompatibilityMode;
}

export interface StoredAction extends Action {
  /** Whether evreg publishes its events, see `domain/service-events.ts`. */
  readonly isBuiltIn: boolean;
  /** Counts its changes from 1, settings included. */
  readonly version: number;
  readonly deprecatedMs: number | null;
  readonly retiredMs: number | null;
}

export interface ActionChange
  extends Pick<Action, "action">, Partial<Pick<Action, "application" | "schemata">> {
  /** The mode in which a new revision was accepted. */
  readonly acceptedIn?: CompatibilityMode;
  readonly settings?: Partial<ActionSettings>;
  readonly expectedVersion: number;
}

export interface ActionSelection {
  readonly applications?: readonly string[];
  /** The most that are listed; all if it is left out. */
  readonly limit?: number;
  readonly after?: string;
}

export interface RevisionSelection {
  readonly action: string;
  readonly limit: number;
  readonly after?: number;
}

/** Its handler is `null` for one of mode `pull`, and only for such. */
export interface SubscriptionRecord extends Pick<
  Subscription,
  "application" | "subscription" | "action" | "handler" | "active"
> {
  readonly maxRetries: number;
  /** The secret is used for the first subscription of its application and name; others share it. */
  readonly secret: string;
  /** What the bearer is; by default the secret. */
  readonly bearer?: BearerSetting;
  readonly settings?: Partial<SubscriptionSettings>;
}

export interface SecretReplacement {
  readonly secret: string;
  /** How long the previous secret stays valid. */
  readonly overlapMs: number;
}

export type BearerSetting =
  | { readonly kind: Exclude<Bearer, "own"> }
  | { readonly kind: "own"; readonly token: string };

export interface SubscriptionSelection extends Omit<SubscriptionQuery, "application"> {
  readonly subscription?: string;
  readonly applications?: readonly string[];
  /** The most that are listed; all if it is left out. */
  readonly limit?: number;
  readonly after?: number;
}

export interface SubscriptionPatch extends Partial<
  Pick<SubscriptionRecord, "maxRetries" | "active" | "action" | "bearer" | "settings">
> {
  readonly handler?: string;
}
