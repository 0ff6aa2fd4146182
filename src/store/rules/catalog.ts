import type { Action } from "../../domain/action.ts";
import { EvregError } from "../../domain/error.ts";
import { isPattern } from "../../domain/names.ts";
import { changedSettings, type SubscriptionSettings } from "../../domain/subscription-settings.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { ActionChange, SubscriptionPatch } from "../catalog.ts";

/** What a change may alter of an action. Times are milliseconds since the epoch; `null` for none. */
export interface ChangeableAction extends Pick<Action, "compatibility"> {
  readonly application: string;
  readonly revision: number;
  readonly deprecatedMs: number | null;
  readonly retiredMs: number | null;
  readonly successor: string | null;
}

/**
 * Answers what an action is after a change. A schema or an application makes the next revision. What was deprecated or retired
 * keeps its time.
 */
export function actionAfter(
  before: ChangeableAction,
  { schemata, application, settings = {} }: ActionChange,
  nowMs: number,
): ChangeableAction {
  const isRevised = schemata !== undefined || application !== undefined;
  const { compatibility, deprecated, retired, successor } = settings;
  return {
    application: application ?? before.application,
    revision: before.revision + (isRevised ? 1 : 0),
    compatibility: compatibility ?? before.compatibility,
    deprecatedMs: sinceWhen(deprecated, before.deprecatedMs, nowMs),
    retiredMs: sinceWhen(retired, before.retiredMs, nowMs),
    successor: successor === undefined ? before.successor : successor,
  };
}

function sinceWhen(is: boolean | undefined, beforeMs: number | null, nowMs: number): number | null {
  if (is === undefined) return beforeMs;
  return is ? (beforeMs ?? nowMs) : null;
}

/** What a change may alter of a subscription, beside its secrets. */
export interface ChangeableSubscription {
  readonly handler: string | null;
  readonly maxRetries: number;
  readonly active: boolean;
  readonly action: string;
  readonly disabledReason: string | null;
  readonly settings: SubscriptionSettings;
}

interface SubscriptionChange {
  readonly after: ChangeableSubscription;
  /** Whether the subscription gets the events of another action, so that its replay ends. */
  readonly isRebound: boolean;
  /** Whether what is known of its handler does not count any more. */
  readonly resetsHealth: boolean;
}

export function subscriptionAfter(
  before: ChangeableSubscription,
  patch: SubscriptionPatch,
): SubscriptionChange {
  const { handler = before.handler, maxRetries = before.maxRetries } = patch;
  const { active = before.active, action = before.action } = patch;
  const settings = changedSettings(before.settings, patch.settings ?? {});
  // Who pauses or reactivates it takes over from the service, so the service's reason goes.
  const disabledReason = patch.active === undefined ? before.disabledReason : null;
  return {
    after: { handler, maxRetries, active, action, disabledReason, settings },
    isRebound: action !== before.action,
    resetsHealth: patch.active === true || handler !== before.handler,
  };
}

export function actionExists({ action, application }: Pick<Action, "action" | "application">): EvregError {
  return conflict("action", action, `there is an action ${action} already, owned by ${application}`);
}

/**
 * Checks that an action exists. A pattern needs none: it matches what comes.
 * @throws EvregError `not_found` for a subscription to an action that does not exist
 */
export function checkActionExists(action: string, exists: boolean): void {
  if (isPattern(action) || exists) return;
  const message = `there is no action ${action}; create it first`;
  throw new EvregError("not_found", `action: ${message}.`, { field: "action", message, value: action });
}

export function subscriptionExists({
  application,
  subscription,
  action,
  rowid,
}: Pick<Subscription, "application" | "subscription" | "action" | "rowid">): EvregError {
  const message = `${application} has a subscription ${subscription} to ${action} already (rowid ${rowid})`;
  return conflict("subscription", subscription, message, { rowid });
}

function conflict(field: string, value: string, message: string, more: object = {}): EvregError {
  return new EvregError("conflict", `${field}: ${message}.`, { field, message, value, ...more });
}
