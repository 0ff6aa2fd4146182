import type { ComponentType } from "preact";
import type { ScopeName } from "../../domain/token.ts";
import type { IconName } from "../parts/icons.tsx";
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
  /** Loads what shows it. Each screen is a file of its own, so that a browser loads what is looked at. */
  readonly view: () => Promise<ScreenView>;
}

export type ScreenView = ComponentType<{ readonly route: Route }>;

export const SCREENS: readonly Screen[] = [
  {
    path: "overview",
    title: "Overview",
    icon: "overview",
    group: "daily",
    key: "o",
    scope: "read",
    view: async () => (await import("../screens/overview/overview.tsx")).Overview,
  },
  {
    path: "events",
    title: "Events",
    icon: "events",
    group: "daily",
    key: "e",
    scope: "read",
    view: async () => (await import("../screens/events/events.tsx")).Events,
  },
  {
    path: "deliveries",
    title: "Deliveries",
    icon: "deliveries",
    group: "daily",
    key: "d",
    scope: "read",
    view: async () => (await import("../screens/deliveries/deliveries.tsx")).Deliveries,
  },
  {
    path: "subscriptions",
    title: "Subscriptions",
    icon: "subscriptions",
    group: "daily",
    key: "s",
    scope: "read",
    view: async () => (await import("../screens/subscriptions/subscriptions.tsx")).Subscriptions,
  },
  {
    path: "actions",
    title: "Actions",
    icon: "actions",
    group: "daily",
    key: "a",
    scope: "read",
    view: async () => (await import("../screens/actions/actions.tsx")).Actions,
  },
  {
    path: "replays",
    title: "Replays",
    icon: "replays",
    group: "operate",
    key: "r",
    scope: "read",
    view: async () => (await import("../screens/replays/replays.tsx")).Replays,
  },
  {
    path: "tokens",
    title: "Tokens",
    icon: "tokens",
    group: "operate",
    key: "t",
    scope: "admin",
    forAll: true,
    view: async () => (await import("../screens/tokens/tokens.tsx")).Tokens,
  },
  {
    path: "audit",
    title: "Audit",
    icon: "audit",
    group: "operate",
    key: "u",
    scope: "admin",
    forAll: true,
    view: async () => (await import("../screens/audit/audit.tsx")).Audit,
  },
  {
    path: "doctor",
    title: "Doctor",
    icon: "doctor",
    group: "operate",
    key: "c",
    scope: "admin",
    forAll: true,
    view: async () => (await import("../screens/doctor/doctor.tsx")).Doctor,
  },
  {
    path: "api",
    title: "API",
    icon: "api",
    group: "operate",
    key: "i",
    scope: "read",
    view: async () => (await import("../screens/api/api.tsx")).Api,
  },
];

export const screenOf = (route: Route): Screen | undefined =>
  route.path.length === 0 ? SCREENS[0] : SCREENS.find(({ path }) => path === route.path[0]);
