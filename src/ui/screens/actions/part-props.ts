import type { Subscription } from "../../../domain/subscription.ts";
import type { Route } from "../../parts/route.ts";
import type { ReadAction } from "../../records/exact-record.ts";

/** What every part of an action's page has. */
export interface PartProps {
  readonly action: ReadAction;
  /** The subscriptions that match it; `undefined` while they are read, and where this token may not read them. */
  readonly subscribers: readonly Subscription[] | undefined;
  readonly route: Route;
}
