import type { Route } from "../../shell/route.ts";
import { EventDetail } from "./event-detail.tsx";
import { EventList } from "./event-list.tsx";

/** All events, or found ones, and beside them the one that was picked. */
export function Events({ route }: { readonly route: Route }) {
  const id = route.path[1];
  return (
    <div class={id === undefined ? "split alone" : "split shows-detail"}>
      <h1 class={id === undefined ? undefined : "sr"}>Events</h1>
      <EventList route={route} selected={id === undefined ? undefined : Number(id)} />
      {id !== undefined && <EventDetail key={id} id={id} query={route.query} />}
    </div>
  );
}
