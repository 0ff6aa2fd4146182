import type { ComponentType } from "preact";
import type { ScopeName } from "../../domain/token.ts";
import type { IconName } from "../parts/icons.tsx";
import { identity, may } from "../api/identity.ts";
import { Overview } from "../screens/overview/overview.tsx";
import { Events } from "../screens/events/events.tsx";
import { Deliveries } from "../screens/deliveries/deliveries.tsx";
import { Replays } from "../screens/replays/replays.tsx";
import { Tokens } from "../screens/tokens/tokens.tsx";
import { Audit } from "../screens/audit/audit.tsx";
import { Doctor } from "../screens/doctor/doctor.tsx";
import { Subscriptions } from "../screens/subscriptions/subscriptions.tsx";
import { Actions } from "../screens/actions/actions.tsx";
import { Api } from "../screens/api/api.tsx";
import type { Route } from "./route.ts";

/** A screen of the page: its place in the navigation, and what shows it. */
export interface Screen {
  /** The first part of its address. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** What is looked at each day, or what a server's operator needs. */
  readonly group: "daily" | "operate";
  /** `G`, then this key. */
  readonly key: string;
  /** What a token needs to see anything in it. */
  readonly scope: ScopeName;
  /** Whether it needs that for all applications. */
  readonly forAll?: boolean;
  readonly view: ComponentType<{ readonly route: Route }>;
}

export const SCREENS: readonly Screen[] = [
  {
    path: "overview",
    title: "Overview",
    icon: "overview",
    group: "daily",
    key: "o",
    scope: "read",
    view: Overview,
  },
  {
    path: "events",
    title: "Events",
    icon: "events",
    group: "daily",
    key: "e",
    scope: "read",
    view: Events,
  },
  {
    path: "deliveries",
    title: "Deliveries",
    icon: "deliveries",
    group: "daily",
    key: "d",
    scope: "read",
    view: Deliveries,
  },
  {
    path: "subscriptions",
    title: "Subscriptions",
    icon: "subscriptions",
    group: "daily",
    key: "s",
    scope: "read",
    view: Subscriptions,
  },
  {
    path: "actions",
    title: "Actions",
    icon: "actions",
    group: "daily",
    key: "a",
    scope: "read",
    view: Actions,
  },
  {
    path: "replays",
    title: "Replays",
    icon: "replays",
    group: "operate",
    key: "r",
    scope: "read",
    view: Replays,
  },
  {
    path: "tokens",
    title: "Tokens",
    icon: "tokens",
    group: "operate",
    key: "t",
    scope: "admin",
    forAll: true,
    view: Tokens,
  },
  {
    path: "audit",
    title: "Audit",
    icon: "audit",
    group: "operate",
    key: "u",
    scope: "admin",
    forAll: true,
    view: Audit,
  },
  {
    path: "doctor",
    title: "Doctor",
    icon: "doctor",
    group: "operate",
    key: "c",
    scope: "admin",
    forAll: true,
    view: Doctor,
  },
  {
    path: "api",
    title: "API",
    icon: "api",
    group: "operate",
    key: "i",
    scope: "read",
    view: Api,
  },
];

export const screenOf = (route: Route): Screen | undefined =>
  route.path.length === 0 ? SCREENS[0] : SCREENS.find(({ path }) => path === route.path[0]);

/** Whether the token may see anything in it. Most screens also show where it has the scope for one application. */
export const isOffered = ({ scope, forAll }: Screen): boolean =>
  may(scope) ||
  (forAll !== true &&
    (identity.value?.scopes ?? []).some((held) => may(scope, held.slice(held.indexOf(":") + 1))));
