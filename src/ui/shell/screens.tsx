import type { ComponentType } from "preact";
import type { ScopeName } from "../../domain/token.ts";
import { may, maySome } from "../api/session.ts";
import type { IconName } from "../parts/icons.tsx";
import type { Route } from "../parts/route.ts";
import { capital } from "../parts/values.tsx";
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

type Listed = readonly [name: IconName, key: string, view: Screen["view"], title?: string];

const listed = (group: Screen["group"], scope: ScopeName, screens: readonly Listed[]): readonly Screen[] =>
  screens.map(([path, key, view, title = capital(path)]) => ({ path, title, group, key, scope, view }));

export const SCREENS: readonly Screen[] = [
  ...listed("daily", "read", [
    ["overview", "o", Overview],
    ["events", "e", Events],
    ["deliveries", "d", Deliveries],
    ["subscriptions", "s", Subscriptions],
    ["actions", "a", Actions],
  ]),
  ...listed("operate", "read", [["replays", "r", Replays]]),
  ...listed("operate", "admin", [
    ["tokens", "t", Tokens],
    ["audit", "u", Audit],
    ["doctor", "c", Doctor],
  ]),
  ...listed("operate", "read", [["api", "i", Api, "API"]]),
];

export const screenOf = (route: Route): Screen | undefined =>
  route.path.length === 0 ? SCREENS[0] : SCREENS.find(({ path }) => path === route.path[0]);

/** Whether the token may see anything in it. Most screens also show where it has the scope for one application. */
export const isOffered = ({ scope }: Screen): boolean => (scope === "admin" ? may(scope) : maySome(scope));
