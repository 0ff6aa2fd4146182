import { useMemo } from "preact/hooks";
import { SUBSCRIPTION_STATES } from "../../../domain/words/attention.ts";
import type { Stats, SubscriptionFigures } from "../../../domain/stats/stats.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { may, identity } from "../../api/identity.ts";
import { withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { SubscriptionName } from "../../parts/delivery-acts.tsx";
import { Command, quoted } from "../../parts/copy.tsx";
import { FilterField, type FilterName } from "../../parts/filter-field.tsx";
import { errorText, failedShare, percentText, rateText } from "../../parts/rates.ts";
import { pageOf } from "../../parts/pages.tsx";
import { Empty, Failed, FIRST_SUBSCRIPTION, NoMatch, Waiting } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { stateNow } from "../../parts/subscription-state.ts";
import { type Column, Table } from "../../parts/table.tsx";
import { useNow } from "../../parts/time.tsx";
import { linkTo, type Route } from "../../shell/route.ts";

/** Any state but active. */
const TROUBLED = "troubled";
const FILTERS: readonly FilterName[] = [
  { name: "application", example: "billing" },
  { name: "action", example: "order.created" },
  { name: "active", example: "true", values: ["true", "false"] },
  { name: "state", example: "failing", values: [...SUBSCRIPTION_STATES, TROUBLED] },
];
const EVERY_MS = 5_000;
/** Long lists are read less often: all of it comes each time. */
const LONG_ROWS = 500;
const LONG_EVERY_MS = 30_000;
const FIGURES_EVERY_MS = 10_000;
const MOST_FIGURES = 1_000;
const SPAN_MINUTES = 60;
const QUIET = <span class="muted">–</span>;

/** Whether somebody who may create at least one of them looks at the list. */
export const mayCreate = (): boolean =>
  (identity.value?.scopes ?? []).some((scope) => /^(write|listen|admin)(:|$)/.test(scope));

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
  const first = useResource<readonly Subscription[]>(path);
  const isLong = (first.answer?.data.length ?? 0) > LONG_ROWS;
  const later = useResource<readonly Subscription[]>(first.answer === undefined ? undefined : path, {
    everyMs: isLong ? LONG_EVERY_MS : EVERY_MS,
  });
  const { error: failure, reload } = first.answer === undefined ? first : later;
  const stateOf = (subscription: Subscription) => stateNow(subscription, now);
  const found = (later.answer ?? first.answer)?.data
    .filter(
      (subscription) =>
        state === undefined ||
        stateOf(subscription) === state ||
        (state === TROUBLED && stateOf(subscription) !== "active"),
    )
    .toSorted(byName);
  const { rows, foot } = pageOf(found, route);

  const figures = useFigures(isLong);
  const columns: readonly Column<Subscription>[] = [
    {
      head: "Subscription",
      grow: true,
      cell: (one) => <SubscriptionName of={one} />,
    },
    { head: "State", cell: (subscription) => <Status state={stateOf(subscription)} /> },
    { head: "Action", wide: true, cell: ({ action: name }) => <code class="cut-text">{name}</code> },
    {
      head: "A minute",
      right: true,
      wide: true,
      cell: ({ rowid }) => {
        const row = figures.get(rowid);
        return row === undefined ? QUIET : rateText((row.delivered + row.failed_attempts) / SPAN_MINUTES);
      },
    },
    {
      head: "Success",
      right: true,
      cell: ({ rowid }) => {
        const row = figures.get(rowid);
        const share = row === undefined ? null : failedShare(row);
        return share === null ? QUIET : percentText(100 - share);
      },
    },
    {
      head: "Last error",
      wide: true,
      cell: ({ rowid }) => {
        const error = figures.get(rowid)?.last_error ?? null;
        return error === null ? QUIET : <code>{errorText(error)}</code>;
      },
    },
  ];
  const isFiltered = FILTERS.some(({ name }) => route.query[name] !== undefined);
  const command = [
    "evreg subscriptions list",
    ...(application === undefined ? [] : [`--application ${quoted(application)}`]),
    ...(action === undefined ? [] : [`--action ${quoted(action)}`]),
    ...(active === undefined ? [] : [active === "true" ? "--active" : "--no-active"]),
  ].join(" ");
  return (
    <section class="stack" aria-label="Subscriptions">
      <header class="head">
        <h1 class="what">Subscriptions</h1>
        {mayCreate() && (
          <div class="acts">
            <a class="btn main" href={linkTo(["subscriptions", "new"], { application, action })}>
              Create a subscription
            </a>
          </div>
        )}
      </header>
      <FilterField
        label="Filter subscriptions"
        path={["subscriptions"]}
        route={route}
        names={FILTERS}
        plain="application"
      />
      {failure !== undefined && rows !== undefined && <Failed error={failure} reload={reload} />}
      <div class="panel">
        {rows === undefined ? (
          <Waiting error={failure} reload={reload} rows={10} />
        ) : rows.length === 0 ? (
          <NoSubscriptions isFiltered={isFiltered} />
        ) : (
          <Table
            label="Subscriptions"
            rows={rows}
            columns={columns}
            keyOf={({ rowid }) => rowid}
            link={({ rowid }) => linkTo(["subscriptions", rowid])}
          />
        )}
        {foot}
      </div>
      {rows !== undefined && rows.length > 0 && (
        <>
          <p class="muted">Figures of the last hour.</p>
          <Command text={command} />
        </>
      )}
    </section>
  );
}

/** What each subscription did in the last hour. */
function useFigures(isLong: boolean): ReadonlyMap<number, SubscriptionFigures> {
  const path = withQuery("/v1/stats", { range: "1h", by: "subscription", limit: MOST_FIGURES });
  const rows = useResource<Stats>(path, { everyMs: isLong ? LONG_EVERY_MS : FIGURES_EVERY_MS }).answer?.data
    .rows;
  return useMemo(
    () => new Map(((rows ?? []) as readonly SubscriptionFigures[]).map((row) => [row.subscription_id, row])),
    [rows],
  );
}

function NoSubscriptions({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <NoMatch what="subscription" screen="subscriptions" />;
  return (
    <Empty
      title="No subscription yet"
      command={FIRST_SUBSCRIPTION}
      button={
        mayCreate() ? (
          <a class="btn main" href="#/subscriptions/new">
            Create a subscription
          </a>
        ) : undefined
      }
    >
      A subscription binds an action to the address that its events are sent to.
      {!may("read") && " This token sees those of its application alone."}
    </Empty>
  );
}
