import { useState } from "preact/hooks";
import type { Delivery } from "../../../domain/delivery.ts";
import type { Route } from "../../shell/route.ts";
import { DeliveryDetail } from "./delivery-detail.tsx";
import { DeliveryList } from "./delivery-list.tsx";

/** All deliveries, or found ones, and beside them the one that was picked. */
export function Deliveries({ route }: { readonly route: Route }) {
  const id = route.path[1];
  const [read, setRead] = useState<Delivery | undefined>();
  return (
    <div class={id === undefined ? "split alone" : "split shows-detail"}>
      <h1 class={id === undefined ? undefined : "sr"}>Deliveries</h1>
      <DeliveryList route={route} selected={id === undefined ? undefined : Number(id)} read={read} />
      {id !== undefined && <DeliveryDetail key={id} id={id} query={route.query} wasRead={setRead} />}
    </div>
  );
}
