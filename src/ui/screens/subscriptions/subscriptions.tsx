import type { Route } from "../../parts/route.ts";
import { NewSubscriptionForm } from "./new-subscription.tsx";
import { SubscriptionList } from "./subscription-list.tsx";
import { SubscriptionPage } from "./subscription-page.tsx";

/** All subscriptions, a new one, or one with its health and settings. */
export function Subscriptions({ route }: { readonly route: Route }) {
  const [, id] = route.path;
  if (id === undefined) return <SubscriptionList route={route} />;
  if (id === "new") return <NewSubscriptionForm query={route.query} />;
  return <SubscriptionPage key={id} id={id} route={route} />;
}
