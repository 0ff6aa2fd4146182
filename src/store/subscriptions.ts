import type { SubscriptionSettings } from "../domain/subscription-settings.ts";
import type { Bearer } from "../domain/subscription.ts";

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
