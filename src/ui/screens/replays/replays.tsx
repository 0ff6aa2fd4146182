import type { ComponentChildren } from "preact";
import type { Replay, ReplayStatus } from "../../../domain/replay.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { may } from "../../api/identity.ts";
import { withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { CopyCommand } from "../../parts/copy.tsx";
import { SubscriptionName, SubscriptionLink } from "../../parts/delivery-acts.tsx";
import { FilterField, type FilterName } from "../../parts/filter-field.tsx";
import { Newer, Pages } from "../../parts/pages.tsx";
import { Empty, Failed, NoMatch, Waiting } from "../../parts/states.tsx";
import { isScrolled, useStill } from "../../parts/still.ts";
import { Status } from "../../parts/status.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { subscriptionFilter, subscriptionsNamed } from "../../parts/list-filters.ts";
import { Time } from "../../parts/time.tsx";
import { linkTo, type Query, type Route } from "../../shell/route.ts";
import { cancelReplay, Progress, SELECTIONS, STATES } from "./progress.tsx";

const PAGE_ROWS = 50;
const EVERY_MS = 1_500;
const STATUSES = ["running", "done", "cancelled", "failed"] as const satisfies readonly ReplayStatus[];

/** Jobs that send past events, how far each is, and one of them. */
export function Replays({ route }: { readonly route: Route }) {
  const id = route.path[1];
  return (
    <div class={id === undefined ? "split alone" : "split shows-detail"}>
      <h1 class={id === undefined ? undefined : "sr"}>Replays</h1>
      <ReplayList route={route} selected={id === undefined ? undefined : Number(id)} />
      {id !== undefined && <ReplayDetail key={id} id={id} query={route.query} />}
    </div>
  );
}

function ReplayState({ status }: { readonly status: ReplayStatus }) {
  return <Status state={STATES[status]} words={status[0]!.toUpperCase() + status.slice(1)} />;
}

function ReplayList({ route, selected }: { readonly route: Route; readonly selected: number | undefined }) {
  const { query } = route;
  const { status, subscription, after } = query;
  const subscriptions = useResource<readonly Subscription[]>("/v1/subscriptions").answer?.data;
  const filters: readonly FilterName[] = [
    { name: "status", example: "running", values: STATUSES },
    subscriptionFilter(subscriptions ?? []),
  ];
  const named = subscriptionsNamed(subscription, subscriptions);
  const path = named.isKnown
    ? withQuery("/v1/replays", { limit: PAGE_ROWS, status, subscription: named.id, after })
    : undefined;
  const list = useResource<readonly Replay[]>(path, { everyMs: EVERY_MS });
  const { rows, waiting, showAll } = useStill({
    list: path ?? "",
    rows: list.answer?.data,
    keyOf: ({ rowid }) => rowid,
    isRead: isScrolled(),
  });
  const oldest = rows?.at(-1);
  const older = rows !== undefined && rows.length >= PAGE_ROWS ? oldest?.rowid : undefined;
  const isFiltered = filters.some(({ name }) => query[name] !== undefined);
  const columns: readonly Column<Replay>[] = [
    { head: "State", cell: ({ status: state }) => <ReplayState status={state} /> },
    { head: "Subscription", grow: true, cell: (row) => <SubscriptionName of={row} /> },
    { head: "Progress", cell: (replay) => <Progress of={replay} /> },
    ...(selected === undefined
      ? ([
          { head: "Sends", wide: true, cell: ({ selection }) => SELECTIONS[selection] },
          { head: "Begun", wide: true, cell: ({ timestamped }) => <Time at={timestamped} /> },
          { head: "Ended", wide: true, cell: ({ finished_at: end }) => <Time at={end} /> },
        ] satisfies readonly Column<Replay>[])
      : []),
  ];
  return (
    <section class="stack list" aria-label="Replays">
      <FilterField label="Filter replays" path={["replays"]} route={route} names={filters} plain="status" />
      {list.error !== undefined && rows !== undefined && <Failed error={list.error} reload={list.reload} />}
      <div class="panel">
        <Newer waiting={waiting} read={list.answer?.data.length} what="replay" show={showAll} />
        {named.reason !== undefined ? (
          <Empty title="No subscription matches">{named.reason}</Empty>
        ) : rows === undefined ? (
          <Waiting error={list.error} reload={list.reload} rows={6} />
        ) : rows.length === 0 ? (
          <NoReplays isFiltered={isFiltered} />
        ) : (
          <Table
            label="Replays"
            rows={rows}
            columns={columns}
            keyOf={({ rowid }) => rowid}
            link={({ rowid }) => linkTo(["replays", rowid], query)}
            selected={selected}
          />
        )}
        <Pages
          shown={rows?.length ?? 0}
          oldest={oldest?.timestamped}
          newest={after === undefined ? undefined : linkTo(["replays"], { ...query, after: undefined })}
          older={older === undefined ? undefined : linkTo(["replays"], { ...query, after: older })}
        />
      </div>
    </section>
  );
}

function NoReplays({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <NoMatch what="replay" screen="replays" />;
  return (
    <Empty
      title="No replay yet"
      command="evreg subscriptions replay --help"
      button={
        <a class="btn" href={linkTo(["deliveries"], { status: "failed" })}>
          Deliveries that failed
        </a>
      }
    >
      A replay sends events of the past to a subscription: those that failed, or were missed while it was
      paused.
    </Empty>
  );
}

function ReplayDetail({ id, query }: { readonly id: string; readonly query: Query }) {
  const path = `/v1/replays/${encodeURIComponent(id)}`;
  const { answer, error, reload } = useResource<Replay>(path, { everyMs: EVERY_MS });
  const replay = answer?.data;
  const back = (
    <a class="back btn bare" href={linkTo(["replays"], query)}>
      All replays
    </a>
  );
  if (replay === undefined) {
    return (
      <article class="detail">
        {back}
        <Waiting error={error} reload={reload} />
      </article>
    );
  }
  const { rowid, status, action, selection, from, to, timestamped, finished_at: end, reason } = replay;
  return (
    <article class="detail" aria-label={`Replay ${rowid}`}>
      {back}
      <header class="head">
        <div class="what">
          <h2 class="h1">
            Replay to <SubscriptionLink of={replay} />
          </h2>
          <p class="facts">
            <ReplayState status={status} />
            <span>
              <b>Replay</b> {rowid}
            </span>
            <span>
              <b>Action</b> <a href={linkTo(["actions", action])}>{action}</a>
            </span>
          </p>
        </div>
        <div class="acts">
          {status === "running" && may("write", replay.application) && (
            <button class="btn danger" onClick={() => void cancelReplay(replay, reload)}>
              Cancel the replay…
            </button>
          )}
          <CopyCommand text={`evreg replays get ${rowid}`} />
        </div>
      </header>
      {error !== undefined && <Failed error={error} />}
      <section class="panel pad stack">
        <Progress of={replay} />
        {reason !== null && <p class="danger-text break">{reason}</p>}
        {status === "running" && (
          <p class="soft">Live deliveries go first. It waits while its subscription is paused.</p>
        )}
      </section>
      <dl class="panel settings">
        <Fact name="Sends">{SELECTIONS[selection]}</Fact>
        <Fact name="From">
          <Time at={from} exact />
        </Fact>
        <Fact name="Until">
          <Time at={to} exact />
        </Fact>
        <Fact name="Begun">
          <Time at={timestamped} exact />
        </Fact>
        <Fact name="Ended">
          <Time at={end} exact />
        </Fact>
      </dl>
      <a href={linkTo(["deliveries"], { subscription: replay.subscription_id })}>
        Deliveries of its subscription
      </a>
    </article>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
