import type { Action, ActionSettings, Admission, Schemata } from "../domain/action.ts";
import type { CompatibilityRule } from "../domain/compatibility.ts";

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
