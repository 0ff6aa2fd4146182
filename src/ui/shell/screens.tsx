import type { ComponentType } from "preact";
import type { ScopeName } from "../../domain/token.ts";
import { may, maySome } from "../api/session.ts";
import type { IconName } from "../parts/icons.tsx";
import type { Route } from "../parts/route.ts";
import { Actions } from "../screens/actions/action-page.tsx";
import { Api } from "../screens/api/api.tsx";
import { Audit } from "../screens/audit/audit.tsx";
import { Deliveries } from "../screens/deliveries/deliveries.tsx";
import { Doctor } from "../screens/doctor/doctor.tsx";
import { Events } from "../screens/events/events.tsx";
import { Overview } from "../screens/overview/overview.tsx";
import { Replays } from "../screens/replays/replays.tsx";
import { Subscriptions } from "../screens/subscriptions/subscription-page.tsx";
import { Tokens } from "../screens/tokens/tokens.tsx";

/** A screen of the page: its place in the navigation, and what shows it. */
export interface Screen {
  /** The first part of its address, and its icon. */
  readonly path: IconName;
  readonly title: string;
  /** What is looked at each day, or what a server's operator needs. */
  readonly group: "daily" | "operate";
  /** `G`, then this key. */
  readonly key: string;
  /** What a token needs to see anything in it; `admin` for all applications. */
  readonly scope: ScopeName;
  readonly view: ComponentType<{ readonly route: Route }>;
}

export const SCREENS: readonly Screen[] = [
  { path: "overview", title: "Overview", key: "o", group: "daily", scope: "read", view: Overview },
  { path: "events", title: "Events", key: "e", group: "daily", scope: "read", view: Events },
  { path: "deliveries", title: "Deliveries", key: "d", group: "daily", scope: "read", view: Deliveries },
  {
    path: "subscriptions",
    title: "Subscriptions",
    key: "s",
    group: "daily",
    scope: "read",
    view: Subscriptions,
  },
  { path: "actions", title: "Actions", key: "a", group: "daily", scope: "read", view: Actions },
  { path: "replays", title: "Replays", key: "r", group: "operate", scope: "read", view: Replays },
  { path: "tokens", title: "Tokens", key: "t", group: "operate", scope: "admin", view: Tokens },
  { path: "audit", title: "Audit", key: "u", group: "operate", scope: "admin", view: Audit },
  { path: "doctor", title: "Doctor", key: "c", group: "operate", scope: "admin", view: Doctor },
  { path: "api", title: "API", key: "i", group: "operate", scope: "read", view: Api },
];

export const screenOf = (route: Route): Screen | undefined =>
  route.path.length === 0 ? SCREENS[0] : SCREENS.find(({ path }) => path === route.path[0]);

/** Whether the token may see anything in it. Most screens also show where it has the scope for one application. */
export const isOffered = ({ scope }: Screen): boolean => (scope === "admin" ? may(scope) : maySome(scope));
