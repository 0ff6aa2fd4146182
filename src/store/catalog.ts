import type { Action, ActionSettings, Admission, CompatibilityRule, Schemata } from "../domain/action.ts";
import type { SubscriptionSettings } from "../domain/subscription-settings.ts";
import type { Bearer } from "../domain/subscription.ts";

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
  readonly edition: number;
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
  readonly basedOnEdition: number;
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
