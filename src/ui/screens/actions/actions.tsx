import type { Route } from "../../parts/route.ts";
import { maySome } from "../../api/identity.ts";
import { ActionList } from "./action-list.tsx";
import { ActionPage } from "./action-page.tsx";
import { NewActionForm } from "./new-action.tsx";

/** All actions, a new one, or one with its schema and what is done with it. */
export function Actions({ route }: { readonly route: Route }) {
  const [, name] = route.path;
  if (name !== undefined) return <ActionPage key={name} name={name} route={route} />;
  // An action may be called anything, also "new".
  if (route.query["create"] !== undefined && maySome("write")) return <NewActionForm query={route.query} />;
  return <ActionList route={route} />;
}
