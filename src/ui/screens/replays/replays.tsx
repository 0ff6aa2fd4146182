import type { Replay, ReplayStatus } from "../../../domain/replay.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { REPLAY_STATUSES } from "../../../model/replay.ts";
import { type Query, send, useResource } from "../../api/resource.ts";
import { may } from "../../api/session.ts";
import { type Question, sayError, useActing } from "../../parts/acting.ts";
import { CopyCommand } from "../../parts/copy.tsx";
import { Button, Definitions, Head } from "../../parts/layout.tsx";
import { type FilterName, List, Split, useParts } from "../../parts/list.tsx";
import { linkTo, type Route } from "../../parts/route.ts";
import { Detail, Empty, Failed, type State, Status } from "../../parts/states.tsx";
import type { Column } from "../../parts/table.tsx";
import { capital, numberText, Time } from "../../parts/values.tsx";
import {
  subscriptionFilter,
  SubscriptionLink,
  SubscriptionName,
  subscriptionNamed,
} from "../../records/subscription.tsx";

const EVERY_MS = 1_500;

const STATES: Readonly<Record<ReplayStatus, State>> = {
  running: "delivering",
  done: "delivered",
  cancelled: "cancelled",
  failed: "failed",
};

const SELECTIONS: Readonly<Record<Replay["selection"], string>> = {
  failed: "Those that failed",
  waiting: "Those that waited",
  missed: "Those that were missed",
  all: "All",
};

const WIDTH = 100;

/** How far a replay is, as a bar and in numbers; what did not end well says so. */
function Progress({ replay }: { readonly replay: Replay }) {
  const { total, queued, skipped, status } = replay;
  if (total === null) return <span class="muted">being counted</span>;
  const isDone = status === "done";
  const share = total === 0 ? 1 : Math.min(1, (queued + skipped) / total);
  return (
    <span class="progress">
      <svg viewBox={`0 0 ${WIDTH} 8`} preserveAspectRatio="none" aria-hidden="true">
        <rect class="track" width={WIDTH} height="8" />
        <rect class={isDone ? "done" : status} width={(isDone ? 1 : share) * WIDTH} height="8" />
      </svg>
      <span>
        {status === "cancelled" && "stopped at "}
        {numberText(queued)} of {numberText(total)}
        {skipped > 0 && `, ${numberText(skipped)} left out`}
      </span>
    </span>
  );
}

/** Jobs that send past events, how far each is, and one of them. */
export function Replays({ route }: { readonly route: Route }) {
  return (
    <Split
      title="Replays"
      route={route}
      list={<ReplayList route={route} />}
      detail={(id) => <ReplayDetail id={id} query={route.query} />}
    />
  );
}

function ReplayState({ status }: { readonly status: ReplayStatus }) {
  return <Status state={STATES[status]} words={capital(status)} />;
}

const COLUMNS: readonly Column<Replay>[] = [
  { head: "State", cell: ({ status }) => <ReplayState status={status} /> },
  { head: "Subscription", grow: true, cell: (row) => <SubscriptionName record={row} /> },
  { head: "Progress", cell: (replay) => <Progress replay={replay} /> },
  { head: "Sends", wide: true, alone: true, cell: ({ selection }) => SELECTIONS[selection] },
  { head: "Begun", wide: true, alone: true, cell: ({ timestamped }) => <Time at={timestamped} /> },
  { head: "Ended", wide: true, alone: true, cell: ({ finished_at: end }) => <Time at={end} /> },
];

const STATUS: FilterName = { name: "status", example: "running", values: REPLAY_STATUSES };

function ReplayList({ route }: { readonly route: Route }) {
  const { status } = route.query;
  const subscriptions = useResource<readonly Subscription[]>("/v1/subscriptions").answer?.data;
  const named = subscriptionNamed(route, subscriptions);
  const list = useParts<Replay>({
    what: "replay",
    path: named.isKnown ? "/v1/replays" : undefined,
    query: { status, subscription: named.id },
    route,
    everyMs: EVERY_MS,
  });
  return (
    <List
      filters={[STATUS, subscriptionFilter(subscriptions)]}
      plain="status"
      source={list}
      columns={COLUMNS}
      keyOf={({ rowid }) => rowid}
      link={({ rowid }) => linkTo(["replays", rowid], route.query)}
      instead={named.instead}
      empty={
        <Empty
          title="No replay yet"
          command="evreg subscriptions replay --help"
          button={<Button to={linkTo(["deliveries"], { status: "failed" })} label="Deliveries that failed" />}
        >
          A replay sends events of the past to a subscription: those that failed, or were missed while it was
          paused.
        </Empty>
      }
    />
  );
}

function ReplayDetail({ id, query }: { readonly id: string; readonly query: Query }) {
  const path = `/v1/replays/${encodeURIComponent(id)}`;
  const read = useResource<Replay>(path, { everyMs: EVERY_MS });
  const { act } = useActing(sayError);
  const cancel = (replay: Replay): void => act(() => send("POST", `${path}/cancel`), cancelQuestion(replay));
  return (
    <Detail source={read} label={`Replay ${id}`} back={["All replays", linkTo(["replays"], query)]}>
      {(replay) => (
        <>
          <Head
            isRecord
            title={
              <>
                Replay to <SubscriptionLink record={replay} />
              </>
            }
            badge={<ReplayState status={replay.status} />}
            facts={{
              Replay: replay.rowid,
              Action: <a href={linkTo(["actions", replay.action])}>{replay.action}</a>,
            }}
            acts={
              <>
                {replay.status === "running" && may("write", replay.application) && (
                  <Button look="danger" run={() => cancel(replay)} label="Cancel the replay…" />
                )}
                <CopyCommand text={`evreg replays get ${replay.rowid}`} />
              </>
            }
          />
          <Failed error={read.error} />
          <section class="panel pad stack">
            <Progress replay={replay} />
            {replay.reason !== null && <p class="danger-text break">{replay.reason}</p>}
            {replay.status === "running" && (
              <p class="soft">Live deliveries go first. It waits while its subscription is paused.</p>
            )}
          </section>
          <Definitions
            kind="panel settings"
            facts={{
              Sends: SELECTIONS[replay.selection],
              From: <Time at={replay.from} exact />,
              Until: <Time at={replay.to} exact />,
              Begun: <Time at={replay.timestamped} exact />,
              Ended: <Time at={replay.finished_at} exact />,
            }}
          />
          <a href={linkTo(["deliveries"], { subscription: replay.subscription_id })}>
            Deliveries of its subscription
          </a>
        </>
      )}
    </Detail>
  );
}

const cancelQuestion = (replay: Replay): Question => ({
  title: `Cancel replay ${replay.rowid}?`,
  body: (
    <>
      <p>
        {numberText(replay.queued)} deliveries to{" "}
        <strong class="strong">
          <SubscriptionName record={replay} />
        </strong>{" "}
        are due already, and are sent all the same. The others are not.
      </p>
      <p>Another replay of the same events goes on with those that are left.</p>
    </>
  ),
  act: "Cancel the replay",
  keep: "Let it run",
  danger: true,
});
