import { useMemo } from "preact/hooks";
import { shellWord } from "../../../domain/formats.ts";
import type { Stats, SubscriptionFigures } from "../../../domain/stats/stats.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { SUBSCRIPTION_STATES } from "../../../domain/words/attention.ts";
import { useResource, withQuery } from "../../api/resource.ts";
import { maySome } from "../../api/session.ts";
import { Command } from "../../parts/copy.tsx";
import { Button, Head, NONE } from "../../parts/layout.tsx";
import { type FilterName, List, partOf } from "../../parts/list.tsx";
import { linkTo, type Route } from "../../parts/route.ts";
import { Status } from "../../parts/states.tsx";
import type { Column } from "../../parts/table.tsx";
import { rateText, useNow } from "../../parts/values.tsx";
import {
  LastError,
  NoSubscriptions,
  stateNow,
  SubscriptionName,
  Success,
} from "../../records/subscription.tsx";

/** Any state but active. */
const TROUBLED = "troubled";
const FILTERS: readonly FilterName[] = [
  { name: "application", example: "billing" },
  { name: "action", example: "order.created" },
  { name: "active", example: "true", values: ["true", "false"] },
  { name: "state", example: "failing", values: [...SUBSCRIPTION_STATES, TROUBLED] },
];
/** All of the list comes each time. */
const EVERY_MS = 10_000;
const MOST_FIGURES = 1_000;
const SPAN_MINUTES = 60;

const byName = (one: Subscription, other: Subscription): number =>
  `${one.application}/${one.subscription}`.localeCompare(
    `${other.application}/${other.subscription}`,
    undefined,
    { numeric: true },
  ) || one.rowid - other.rowid;

/** All subscriptions by name, with how each of them is. */
export function SubscriptionList({ route }: { readonly route: Route }) {
  const { application, action, active, state } = route.query;
  const path = withQuery("/v1/subscriptions", { application, action, active });
  const now = useNow();
  const list = useResource<readonly Subscription[]>(path, { everyMs: EVERY_MS });
  const stateOf = (subscription: Subscription) => stateNow(subscription, now);
  const shown = list.answer?.data
    .filter(
      (subscription) =>
        state === undefined ||
        stateOf(subscription) === state ||
        (state === TROUBLED && stateOf(subscription) !== "active"),
    )
    .toSorted(byName);

  const figures = useFigures();
  const columns: readonly Column<Subscription>[] = [
    { head: "Subscription", grow: true, cell: (one) => <SubscriptionName record={one} /> },
    { head: "State", cell: (subscription) => <Status state={stateOf(subscription)} /> },
    { head: "Action", wide: true, cell: ({ action: name }) => <code class="cut-text">{name}</code> },
    {
      head: "A minute",
      right: true,
      wide: true,
      cell: ({ rowid }) => {
        const row = figures.get(rowid);
        return row === undefined ? NONE : rateText((row.delivered + row.failed_attempts) / SPAN_MINUTES);
      },
    },
    { head: "Success", right: true, cell: ({ rowid }) => <Success figures={figures.get(rowid)} /> },
    { head: "Last error", wide: true, cell: ({ rowid }) => <LastError figures={figures.get(rowid)} /> },
  ];
  const command = [
    "evreg subscriptions list",
    ...(application === undefined ? [] : [`--application ${shellWord(application)}`]),
    ...(action === undefined ? [] : [`--action ${shellWord(action)}`]),
    ...(active === undefined ? [] : [active === "true" ? "--active" : "--no-active"]),
  ].join(" ");
  const create = maySome("listen") && (
    <Button
      look="main"
      to={linkTo(["subscriptions", "new"], { application, action })}
      label="Create a subscription"
    />
  );
  return (
    <List
      filters={FILTERS}
      plain="application"
      source={partOf("subscription", shown, list, route)}
      columns={columns}
      keyOf={({ rowid }) => rowid}
      link={({ rowid }) => linkTo(["subscriptions", rowid])}
      heading={<Head title="Subscriptions" acts={create} />}
      empty={<NoSubscriptions button={create} />}
      below={
        <>
          <p class="muted">Figures of the last hour.</p>
          <Command text={command} />
        </>
      }
    />
  );
}

/** What each subscription did in the last hour. */
function useFigures(): ReadonlyMap<number, SubscriptionFigures> {
  const path = withQuery("/v1/stats", { range: "1h", by: "subscription", limit: MOST_FIGURES });
  const rows = useResource<Stats>(path, { everyMs: EVERY_MS }).answer?.data.rows;
  return useMemo(
    () => new Map(((rows ?? []) as readonly SubscriptionFigures[]).map((row) => [row.subscription_id, row])),
    [rows],
  );
}
