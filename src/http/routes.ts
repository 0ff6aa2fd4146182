import { ACTION_ROUTES } from "./actions.ts";
import { BACKUP_ROUTE } from "./backup.ts";
import { DELIVERY_ROUTES } from "./deliveries.ts";
import { DOCTOR_ROUTE } from "./doctor.ts";
import { EVENT_ROUTES } from "./events.ts";
import { HEALTH_ROUTE } from "./health.ts";
import { METRICS_ROUTE } from "./metrics.ts";
import { REPLAY_ROUTES } from "./replays.ts";
import type { Route } from "./route.ts";
import { SUBSCRIPTION_ROUTES } from "./subscriptions.ts";
import { TOKEN_ROUTES } from "./tokens.ts";
import { WHOAMI_ROUTE } from "./whoami.ts";

/** Every route but that of the document that describes them. */
export const ROUTES: readonly Route[] = [
  ...ACTION_ROUTES,
  ...EVENT_ROUTES,
  ...SUBSCRIPTION_ROUTES,
  ...DELIVERY_ROUTES,
  ...REPLAY_ROUTES,
  ...TOKEN_ROUTES,
  WHOAMI_ROUTE,
  HEALTH_ROUTE,
  METRICS_ROUTE,
  DOCTOR_ROUTE,
  BACKUP_ROUTE,
];
